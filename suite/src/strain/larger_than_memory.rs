//! Reads of data ten times larger than the cache: is every kind of them faster than `InnoDB`'s?
//!
//! Both engines read past the system's page cache, so that each has its cache alone.

use std::fmt;

use crate::arithmetic;
use crate::results::comparison::{Comparison, Group};
use crate::results::record::Line;
use crate::target::Engine;

/// The queries: points, key ranges and scans, with rows that must be fetched and without.
pub const QUERIES: [&str; 6] = [
    "READ_PK_POINT",
    "READ_PK_RANGE",
    "READ_KEY_POINT",
    "READ_KEY_RANGE",
    "READ_KEY_RANGE_NO_DATA",
    "READ_FTS",
];

/// The server's options by which neither engine is helped by the page cache.
pub const SERVER_OPTIONS: [&str; 2] =
    ["--innodb-flush-method=O_DIRECT", "--peregrine-direct-io=ON"];

/// What came of it.
#[derive(Debug)]
pub struct Outcome {
    /// The ratio that each cell must reach.
    pub least: f64,
    /// Each engine's cache, in bytes.
    pub cache_bytes: u64,
    /// Bytes on disk: `InnoDB`'s, and Peregrine's.
    pub disk_bytes: (u64, u64),
    /// Peregrine's figure to `InnoDB`'s in each cell; `None` where one has none, or a wrong one.
    pub cells: Vec<(Group, Option<f64>)>,
}

impl Outcome {
    /// Judges what a run of the benchmark found.
    #[must_use]
    pub fn of(lines: &[Line], cache_bytes: u64, least: f64) -> Self {
        let comparison = Comparison::new(lines);
        let cells = comparison.groups().into_iter().map(|group| {
            let ratio = comparison.ratio(&group, Engine::Peregrine, Engine::InnoDb);
            (group, ratio)
        });
        let disk = |engine: Engine| {
            lines.iter().rev().find_map(|line| match line {
                Line::Load(load) if load.engine == engine => Some(load.disk_bytes),
                _ => None,
            })
        };
        Self {
            least,
            cache_bytes,
            disk_bytes: (
                disk(Engine::InnoDb).unwrap_or(0),
                disk(Engine::Peregrine).unwrap_or(0),
            ),
            cells: cells.collect(),
        }
    }

    /// The cells that do not reach what is asked for.
    pub fn short(&self) -> impl Iterator<Item = &(Group, Option<f64>)> {
        self.cells
            .iter()
            .filter(|(_, ratio)| !ratio.is_some_and(|ratio| ratio >= self.least))
    }

    /// Whether every cell does.
    #[must_use]
    pub fn held(&self) -> bool {
        !self.cells.is_empty() && self.short().next().is_none()
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ratios: Vec<f64> = self.cells.iter().filter_map(|(_, ratio)| *ratio).collect();
        write!(
            f,
            "{}: cache of {} MB for data of {} MB (InnoDB) and {} MB (Peregrine), read past the page cache: \
             Peregrine to InnoDB in {} cells at least {:.2}, {:.2} asked for; geometric mean {:.2}",
            if self.held() { "held" } else { "NOT HELD" },
            self.cache_bytes / 1_000_000,
            self.disk_bytes.0 / 1_000_000,
            self.disk_bytes.1 / 1_000_000,
            self.cells.len(),
            ratios.iter().copied().reduce(f64::min).unwrap_or(0.0),
            self.least,
            arithmetic::geometric_mean(&ratios).unwrap_or(0.0),
        )?;
        for (group, ratio) in self.short() {
            let ratio = ratio.map_or_else(|| "void".to_owned(), |ratio| format!("{ratio:.2}"));
            write!(
                f,
                "; {} with {} threads {ratio}",
                group.query, group.threads
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::sample;

    fn found(peregrine: f64, wrong: u64) -> Outcome {
        let mut lines = Vec::new();
        for (engine, qps) in [(Engine::InnoDb, 1_000.0), (Engine::Peregrine, peregrine)] {
            for query in QUERIES {
                let mut run = sample::run(engine, query, 4, 1, qps);
                run.wrong = wrong;
                lines.push(Line::Run(run));
            }
        }
        Outcome::of(&lines, 32 << 20, 1.5)
    }

    #[test]
    fn it_holds_when_every_cell_reaches_the_ratio_with_right_answers() {
        assert!(found(1_500.0, 0).held());
        let short = found(1_499.0, 0);
        assert!(!short.held());
        assert!(
            short.to_string().contains("READ_FTS with 4 threads 1.50"),
            "{short}"
        );
        let wrong = found(9_000.0, 1);
        assert!(!wrong.held());
        assert!(wrong.to_string().starts_with("NOT HELD"), "{wrong}");
        assert!(wrong.to_string().contains("void"), "{wrong}");
        assert!(!Outcome::of(&[], 1, 1.5).held(), "nothing proves nothing");
    }
}
