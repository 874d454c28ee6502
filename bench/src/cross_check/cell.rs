//! Compares our turns with a tool's, and judges whether they agree.
//!
//! A rate depends on server and client together, and clients differ: one checks every answer, another discards them. If
//! rates differ that processors limit, the comparison computes our rate again, with the cost of the tool's client. It
//! takes the processor time a second that our server and client had together. Each query takes the time of our server
//! and the time of the tool's client.

use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{CellAlignment, Table};

use super::turn::{
    Medians, Turn, {self},
};
use crate::results::figure::short;
use peregrine_harness::arithmetic;

/// One query, or the mix, with one number of sessions.
#[derive(Debug, Clone, PartialEq)]
pub struct Cell {
    /// Its name.
    pub name: String,
    /// The number of sessions.
    pub threads: u32,
    /// Our turns.
    pub ours: Vec<Turn>,
    /// The tool's turns.
    pub theirs: Vec<Turn>,
}

/// The conditions under which figures agree.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// The largest difference, as a fraction of the tool's figure, such as 0.1.
    pub within: f64,
    /// Whether processors limit the rates, and not the disk; only then can a client's cost explain a difference.
    pub by_processor: bool,
}

/// The result of comparing a cell's figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The rates agree.
    Agrees,
    /// The rates differ, but agree with the tool's client instead of ours, and the server's processor time agrees.
    Client,
    /// The rates differ, and the client's cost does not explain it.
    Differs,
    /// There were faults, or a client did nothing.
    Void,
}

impl Verdict {
    /// Returns whether the figures agree, or the client's cost explains the difference.
    #[must_use]
    pub fn holds(self) -> bool {
        matches!(self, Self::Agrees | Self::Client)
    }

    fn word(self) -> &'static str {
        match self {
            Self::Agrees => "agrees",
            Self::Client => "client cost",
            Self::Differs => "DIFFERS",
            Self::Void => "VOID",
        }
    }
}

/// The figures of a cell.
#[derive(Debug, Clone, Copy)]
pub struct Figures {
    /// Ours.
    pub ours: Medians,
    /// The tool's.
    pub theirs: Medians,
    /// Our rate divided by the tool's.
    pub ratio: f64,
    /// The same ratio with the tool's client instead of ours.
    pub exchanged: f64,
    /// Our server's processor time for each unit done, divided by the tool's.
    pub server: f64,
}

impl Cell {
    /// Creates a cell without turns.
    #[must_use]
    pub fn new(name: &str, threads: u32) -> Self {
        Self {
            name: name.to_owned(),
            threads,
            ours: Vec::new(),
            theirs: Vec::new(),
        }
    }

    /// Returns the cell's figures, or `None` if it is void.
    ///
    /// Each ratio is the median of the ratios of adjacent turns, because other load on the machine varies over time.
    #[must_use]
    pub fn figures(&self) -> Option<Figures> {
        let pairs = || self.ours.iter().zip(&self.theirs);
        let of = |figure: &dyn Fn(&Medians, &Medians) -> Option<f64>| {
            let one = |turn: &Turn| Medians::of(std::slice::from_ref(turn));
            let figures: Option<Vec<f64>> = pairs()
                .map(|(ours, theirs)| figure(&one(ours)?, &one(theirs)?))
                .collect();
            turn::median(figures?)
        };
        let exchanged = |ours: &Medians, theirs: &Medians| {
            let had = ours.server_us + ours.client_us;
            let rate = ours.rate * arithmetic::ratio(had, ours.server_us + theirs.client_us)?;
            arithmetic::ratio(rate, theirs.rate)
        };
        Some(Figures {
            ours: Medians::of(&self.ours)?,
            theirs: Medians::of(&self.theirs)?,
            ratio: of(&|ours, theirs| arithmetic::ratio(ours.rate, theirs.rate))?,
            exchanged: of(&exchanged)?,
            server: of(&|ours, theirs| arithmetic::ratio(ours.server_us, theirs.server_us))?,
        })
    }

    /// Compares the figures.
    #[must_use]
    pub fn verdict(&self, limits: Limits) -> Verdict {
        let Some(figures) = self.figures() else {
            return Verdict::Void;
        };
        let near = |ratio: f64| (ratio - 1.0).abs() <= limits.within;
        if near(figures.ratio) {
            Verdict::Agrees
        } else if limits.by_processor && near(figures.exchanged) && near(figures.server) {
            Verdict::Client
        } else {
            Verdict::Differs
        }
    }
}

/// Renders a table of cells.
///
/// `tool` is the other client's name, `unit` is what a rate counts a second, and `each` is the unit of the processor
/// time.
#[must_use]
pub fn table(cells: &[Cell], limits: Limits, tool: &str, (unit, each): (&str, &str)) -> String {
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED.with_rounded_corners());
    let mut head = vec![
        unit.to_owned(),
        "threads".to_owned(),
        "ours (minimum to maximum)".to_owned(),
        format!("{tool} (minimum to maximum)"),
        "ratio".to_owned(),
        format!("client µs a {each}"),
        format!("server µs a {each}"),
    ];
    if limits.by_processor {
        head.push(format!("ratio with {tool}'s client"));
    }
    head.push(String::new());
    let figures = head.len() - 2;
    table.set_header(head);
    for cell in cells {
        let mut row = vec![cell.name.clone(), cell.threads.to_string()];
        if let Some(figures) = cell.figures() {
            let Figures { ours, theirs, .. } = &figures;
            let rate = |of: &Medians| {
                let (minimum, most) = of.between;
                format!("{} ({} to {})", short(of.rate), short(minimum), short(most))
            };
            row.extend([
                rate(ours),
                rate(theirs),
                format!("{:.2}", figures.ratio),
                format!("{:.1} : {:.1}", ours.client_us, theirs.client_us),
                format!("{:.1} : {:.1}", ours.server_us, theirs.server_us),
            ]);
            if limits.by_processor {
                row.push(format!("{:.2}", figures.exchanged));
            }
        }
        row.resize(figures + 1, "-".to_owned());
        row.push(cell.verdict(limits).word().to_owned());
        table.add_row(row);
    }
    for column in table.column_iter_mut().skip(1).take(figures) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TENTH: Limits = Limits {
        within: 0.1,
        by_processor: true,
    };

    /// Returns turns of two seconds at a rate, with processor time for each query in microseconds.
    fn turns(rate: u64, server_us: f64, client_us: f64) -> Vec<Turn> {
        let done = rate * 2;
        let cpu = |us: f64| us * done as f64 / 1e6;
        let turn = Turn {
            counted: done,
            done,
            seconds: 2.0,
            server_cpu: cpu(server_us),
            client_cpu: cpu(client_us),
            statements: None,
            conflicts: 0,
            faults: 0,
        };
        vec![turn; 3]
    }

    fn cell(ours: Vec<Turn>, theirs: Vec<Turn>) -> Cell {
        Cell {
            ours,
            theirs,
            ..Cell::new("READ_PK_POINT", 4)
        }
    }

    #[test]
    fn near_rates_agree_whoever_is_the_faster() {
        for (ours, wanted) in [
            (10_000, Verdict::Agrees),
            (10_900, Verdict::Agrees),
            (9_100, Verdict::Agrees),
            (11_200, Verdict::Differs),
            (8_800, Verdict::Differs),
        ] {
            let found = cell(turns(ours, 100.0, 100.0), turns(10_000, 100.0, 100.0));
            assert_eq!(found.verdict(TENTH), wanted, "{ours}");
        }
    }

    #[test]
    fn a_slower_client_explains_a_slower_rate_where_the_server_took_the_same() {
        // Two processors are busy. With 200 µs of both for each query, the rate is 10,000 a second; with 250 µs it is
        // 8,000.
        let found = cell(turns(8_000, 100.0, 150.0), turns(10_000, 100.0, 100.0));
        let figures = found.figures().expect("figures");
        assert!((figures.ratio - 0.8).abs() < 1e-9);
        assert!((figures.exchanged - 1.0).abs() < 1e-9);
        assert_eq!(found.verdict(TENTH), Verdict::Client);
        // The rates are the same, but our server took longer, so the client does not explain them.
        let other = cell(turns(8_000, 115.0, 150.0), turns(10_000, 100.0, 100.0));
        assert_eq!(other.verdict(TENTH), Verdict::Differs);
        // Other processes took half of the processor time; the client still explains the rates.
        let busy = cell(turns(4_000, 100.0, 150.0), turns(5_000, 100.0, 100.0));
        assert_eq!(busy.verdict(TENTH), Verdict::Client);
        // If the disk limits the rates, a client's cost does not explain them.
        let disk = Limits {
            by_processor: false,
            ..TENTH
        };
        assert_eq!(found.verdict(disk), Verdict::Differs);
    }

    #[test]
    fn turns_are_compared_with_those_beside_them() {
        // The machine was slow in the second round, for both clients.
        let of = |rates: [u64; 3]| rates.map(|rate| turns(rate, 100.0, 100.0)[0]).to_vec();
        let found = cell(of([9_000, 5_000, 9_900]), of([9_100, 5_100, 12_000]));
        let figures = found.figures().expect("figures");
        assert!((figures.ratio - 5_000.0 / 5_100.0).abs() < 1e-9);
        assert!((figures.ours.rate - 9_000.0).abs() < 1e-9);
    }

    #[test]
    fn faults_void_a_cell() {
        let mut ours = turns(10_000, 100.0, 100.0);
        ours[1].faults = 1;
        let found = cell(ours, turns(10_000, 100.0, 100.0));
        assert_eq!(found.verdict(TENTH), Verdict::Void);
        assert!(!Verdict::Void.holds() && !Verdict::Differs.holds());
        let shown = table(&[found], TENTH, "sysbench", ("queries/s", "query"));
        assert!(shown.contains("VOID"), "{shown}");
    }
}
