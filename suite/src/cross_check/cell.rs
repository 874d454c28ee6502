//! Our turns beside a tool's, and whether they agree.
//!
//! A rate is that of server and client together, and clients differ: one checks every answer, another throws them
//! away. So where rates differ that processors limit, ours is computed again with the tool's client instead of our
//! own: with as much processor time a second as server and client had together, each query taking what our server
//! took and what the tool's client took.

use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{CellAlignment, Table};

use super::turn::{
    Medians, Turn, {self},
};
use crate::arithmetic;
use crate::results::figure::short;

/// One query, or the mix, with one number of sessions.
#[derive(Debug, Clone, PartialEq)]
pub struct Cell {
    /// Its name.
    pub name: String,
    /// Sessions.
    pub threads: u32,
    /// Our turns.
    pub ours: Vec<Turn>,
    /// The tool's.
    pub theirs: Vec<Turn>,
}

/// When figures agree.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// How far they may lie apart, as a part of the tool's, such as 0.1.
    pub within: f64,
    /// Whether processors limit the rates, and not the disk: only then can a client's cost be the reason for a
    /// difference.
    pub by_processor: bool,
}

/// Whether a cell's figures agree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The rates do.
    Agrees,
    /// The rates don't; with the tool's client instead of ours they do, and so does the server's processor time.
    Client,
    /// Neither.
    Differs,
    /// There were faults, or nothing was done.
    Void,
}

impl Verdict {
    /// Whether the figures agree, or it is known why not.
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
    /// Our rate over the tool's.
    pub ratio: f64,
    /// The same with the tool's client instead of ours.
    pub exchanged: f64,
    /// Our server's processor time for each thing done over the tool's.
    pub server: f64,
}

impl Cell {
    /// A cell without turns.
    #[must_use]
    pub fn new(name: &str, threads: u32) -> Self {
        Self {
            name: name.to_owned(),
            threads,
            ours: Vec::new(),
            theirs: Vec::new(),
        }
    }

    /// Its figures, unless it is void. Ratios are medians of those of turns that followed each
    /// other, since what else the machine does comes and goes.
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

    /// Whether the figures agree.
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

/// A table of cells; `tool` is the other's name, and `unit` what rates count a second, `each` what processor time is
/// told for.
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

    /// Turns of two seconds at a rate, with processor time for each query in microseconds.
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
        // Two busy processors: 200 µs of both for each query is 10,000 a second, 250 µs 8,000.
        let found = cell(turns(8_000, 100.0, 150.0), turns(10_000, 100.0, 100.0));
        let figures = found.figures().expect("figures");
        assert!((figures.ratio - 0.8).abs() < 1e-9);
        assert!((figures.exchanged - 1.0).abs() < 1e-9);
        assert_eq!(found.verdict(TENTH), Verdict::Client);
        // The same rates, and our server took longer: that is no client.
        let other = cell(turns(8_000, 115.0, 150.0), turns(10_000, 100.0, 100.0));
        assert_eq!(other.verdict(TENTH), Verdict::Differs);
        // Half of the processor time went to others: the reason is the same.
        let busy = cell(turns(4_000, 100.0, 150.0), turns(5_000, 100.0, 100.0));
        assert_eq!(busy.verdict(TENTH), Verdict::Client);
        // Where the disk limits the rates, no client's cost is the reason.
        let disk = Limits {
            by_processor: false,
            ..TENTH
        };
        assert_eq!(found.verdict(disk), Verdict::Differs);
    }

    #[test]
    fn turns_are_compared_with_those_beside_them() {
        // The machine was slow in the second round, for both.
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
