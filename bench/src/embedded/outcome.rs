//! The results: a table, all runs, and whether the library keeps its promises.

use std::fmt;
use std::time::Duration;

use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{CellAlignment, Table};

use super::expected::Expected;

/// The store that must be at least as fast as [`FASTEST`], and [`OTHERS_FACTOR`] times as fast as the others.
const OURS: &str = "Peregrine";
const FASTEST: &str = "LMDB";

/// How many times as fast as the stores other than LMDB the library must be.
pub const OTHERS_FACTOR: f64 = 3.0;

/// The runs of one store in one measurement.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Cell {
    /// The reads or bytes a second of each run.
    pub rates: Vec<f64>,
    /// The number of calls, or scans, with a wrong answer; any wrong answer makes the cell void.
    pub wrong: u64,
}

impl Cell {
    /// Returns the best run, if no answer was wrong.
    #[must_use]
    pub fn best(&self) -> Option<f64> {
        let best = self.rates.iter().copied().reduce(f64::max);
        best.filter(|_| self.wrong == 0)
    }
}

/// The results of one store.
#[derive(Debug, Clone)]
pub struct StoreOutcome {
    /// Its name.
    pub title: &'static str,
    /// Its settings.
    pub settings: String,
    /// The time for loading.
    pub loading: Duration,
    /// Point reads, one cell for each number of threads.
    pub points: Vec<Cell>,
    /// Scans.
    pub scan: Cell,
    /// Wrong rows and entries after loading; if there are any, no figure of the store counts.
    pub wrong: u64,
    /// The first wrong answer.
    pub problem: Option<String>,
}

impl StoreOutcome {
    pub(super) fn new(
        title: &'static str,
        settings: String,
        loading: Duration,
        threads: &[u32],
    ) -> Self {
        Self {
            title,
            settings,
            loading,
            points: vec![Cell::default(); threads.len()],
            scan: Cell::default(),
            wrong: 0,
            problem: None,
        }
    }

    /// Returns whether every answer was right.
    #[must_use]
    pub fn is_right(&self) -> bool {
        let all = self.points.iter().chain([&self.scan]);
        self.wrong + all.map(|cell| cell.wrong).sum::<u64>() == 0
    }

    fn point(&self, cell: usize) -> Option<f64> {
        self.points.get(cell)?.best().filter(|_| self.wrong == 0)
    }

    fn scanned(&self) -> Option<f64> {
        self.scan.best().filter(|_| self.wrong == 0)
    }
}

/// The results of all stores.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The number of rows in the table.
    pub rows: u32,
    /// Bytes of their values.
    pub bytes: u64,
    /// The numbers of threads of the point reads.
    pub threads: Vec<u32>,
    /// The stores.
    pub stores: Vec<StoreOutcome>,
    /// A plain memory copy of as many bytes.
    pub copying: Cell,
}

impl Outcome {
    pub(super) fn new(expected: &Expected, threads: &[u32]) -> Self {
        Self {
            rows: expected.count(),
            bytes: expected.bytes(),
            threads: threads.to_vec(),
            stores: Vec::new(),
            copying: Cell::default(),
        }
    }

    fn store(&self, title: &str) -> Option<&StoreOutcome> {
        self.stores.iter().find(|store| store.title == title)
    }

    /// Returns the rate of Peregrine's point reads divided by another store's; `None` if either is missing or void.
    fn ratio(&self, cell: usize, other: &StoreOutcome) -> Option<f64> {
        let ours = self.store(OURS)?.point(cell)?;
        Some(ours / other.point(cell)?)
    }

    /// Returns the other stores, with the ratio that Peregrine must reach.
    fn others(&self) -> impl Iterator<Item = (&StoreOutcome, f64)> {
        let others = self.stores.iter().filter(|store| store.title != OURS);
        others.map(|store| {
            let wanted = if store.title == FASTEST {
                1.0
            } else {
                OTHERS_FACTOR
            };
            (store, wanted)
        })
    }

    /// Returns whether every answer was right, and Peregrine's point reads reach every required ratio at every number
    /// of threads.
    #[must_use]
    pub fn held(&self) -> bool {
        let fast = self.others().all(|(store, wanted)| {
            (0..self.threads.len())
                .all(|cell| self.ratio(cell, store).is_some_and(|ratio| ratio >= wanted))
        });
        fast && self.stores.len() > 1 && self.stores.iter().all(StoreOutcome::is_right)
    }

    /// Renders the table of all stores.
    #[must_use]
    pub fn table(&self) -> String {
        let mut table = Table::new();
        table.load_style(UTF8_FULL_CONDENSED.with_rounded_corners());
        let points = self.threads.iter().map(|threads| match threads {
            1 => "reads/s, 1 thread".to_owned(),
            n => format!("reads/s, {n} threads"),
        });
        let header = ["store".to_owned()]
            .into_iter()
            .chain(points)
            .chain(["scan, MB/s".to_owned(), "load, s".to_owned()]);
        table.set_header(header);
        for store in &self.stores {
            let mut row = vec![store.title.to_owned()];
            for cell in 0..self.threads.len() {
                let ratio = (store.title != OURS)
                    .then(|| self.ratio(cell, store))
                    .flatten();
                row.push(match (store.point(cell), ratio) {
                    (None, _) => "void".to_owned(),
                    (Some(rate), None) => format!("{rate:.0}"),
                    (Some(rate), Some(ratio)) => format!("{rate:.0} ({OURS}: {ratio:.2} ×)"),
                });
            }
            row.push(self.against_copying(store.scanned()));
            row.push(format!("{:.1}", store.loading.as_secs_f64()));
            table.add_row(row);
        }
        let mut last = vec!["plain copy".to_owned()];
        last.extend(self.threads.iter().map(|_| String::new()));
        last.push(self.against_copying(self.copying.best()));
        last.push(String::new());
        table.add_row(last);
        for column in table.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        table.to_string()
    }

    fn against_copying(&self, rate: Option<f64>) -> String {
        match (rate, self.copying.best()) {
            (None, _) => "void".to_owned(),
            (Some(rate), None) => format!("{:.0}", rate / 1e6),
            (Some(rate), Some(copy)) => format!("{:.0} ({:.2})", rate / 1e6, rate / copy),
        }
    }

    /// Returns each store's settings, wrong answers and runs.
    #[must_use]
    pub fn details(&self) -> String {
        use std::fmt::Write as _;
        let runs = |cell: &Cell, unit: f64| {
            let shown: Vec<String> = cell
                .rates
                .iter()
                .map(|rate| format!("{:.0}", rate / unit))
                .collect();
            shown.join(" ")
        };
        let mut text = String::new();
        // Writing to memory never fails.
        for store in &self.stores {
            let _ = writeln!(text, "{}: {}", store.title, store.settings);
            for (threads, cell) in self.threads.iter().zip(&store.points) {
                let _ = writeln!(text, "  {threads} threads, reads/s: {}", runs(cell, 1.0));
            }
            let _ = writeln!(text, "  scan, MB/s: {}", runs(&store.scan, 1e6));
            if !store.is_right() {
                let wrong: u64 = store.points.iter().map(|cell| cell.wrong).sum();
                let _ = writeln!(
                    text,
                    "  WRONG: {} after loading ({}), {wrong} calls of point reads, {} scans",
                    store.wrong,
                    store.problem.as_deref().unwrap_or("-"),
                    store.scan.wrong
                );
            }
        }
        let _ = writeln!(text, "plain copy, MB/s: {}", runs(&self.copying, 1e6));
        text
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = if self.held() { "held" } else { "NOT HELD" };
        write!(
            f,
            "{word}: {OURS}'s library, {} rows of {} bytes, all in memory; point reads",
            self.rows,
            self.bytes / u64::from(self.rows).max(1)
        )?;
        for (cell, threads) in self.threads.iter().enumerate() {
            let rate = self.store(OURS).and_then(|store| store.point(cell));
            write!(
                f,
                "{} by {threads}: {}",
                if cell == 0 { "" } else { ";" },
                rate.map_or("void".to_owned(), |rate| format!("{rate:.0} a second"))
            )?;
            for (store, wanted) in self.others() {
                match self.ratio(cell, store) {
                    Some(ratio) => write!(f, ", {ratio:.2} × {}", store.title)?,
                    None => write!(f, ", {} void", store.title)?,
                }
                write!(f, " ({wanted:.0} required)")?;
            }
        }
        let scan = self.store(OURS).and_then(StoreOutcome::scanned);
        if let (Some(scan), Some(copy)) = (scan, self.copying.best()) {
            write!(
                f,
                "; scan {:.0} MB/s, {:.2} of a plain copy",
                scan / 1e6,
                scan / copy
            )?;
        }
        let wrong = self.stores.iter().filter(|store| !store.is_right());
        for store in wrong {
            write!(f, "; {} gave WRONG ANSWERS", store.title)?;
        }
        Ok(())
    }
}
