//! The changes between two results: all cells that both have, and whether they differ more than their runs do.

use std::collections::BTreeMap;

use super::comparison::{Comparison, Group};
use peregrine_harness::arithmetic;
use peregrine_harness::engines::Engine;

/// A cell of both results.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// The workload, protocol, query and number of threads.
    pub group: Group,
    /// The engine.
    pub engine: Engine,
    /// The unit of the figures.
    pub unit: String,
    /// The figure before.
    pub before: f64,
    /// The figure after.
    pub after: f64,
    /// The figure after over the one before.
    pub ratio: f64,
    /// The meaning of the ratio.
    pub meaning: Meaning,
}

/// The meaning of the difference between a cell's figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Meaning {
    /// Slower, by more than runs of the same cell differ.
    Slower,
    /// Faster, by more than runs of the same cell differ.
    Faster,
    /// The figures differ no more than runs of the same cell.
    Tie,
    /// One of the results has a single run, so the difference between runs is unknown.
    Unknown,
}

impl Meaning {
    /// The word for it in texts.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Slower => "slower",
            Self::Faster => "faster",
            Self::Tie => "tie",
            Self::Unknown => "one run only",
        }
    }
}

/// The counts of an engine's cells by meaning.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Balance {
    /// The number of faster cells.
    pub faster: usize,
    /// The number of slower cells.
    pub slower: usize,
    /// The number of ties.
    pub ties: usize,
    /// The number of cells with a single run.
    pub unknown: usize,
    /// The geometric mean of the ratios, ties included.
    pub mean: Option<f64>,
}

/// All changes between two results.
#[derive(Debug, Clone, PartialEq)]
pub struct Changes {
    /// The cells that are valid in both results, by group and engine.
    pub cells: Vec<Change>,
    /// Cells that both results have and that are void in one of them, because of a wrong answer or an error.
    pub void: Vec<(Group, Engine)>,
    /// The number of cells that only the first result has.
    pub gone: usize,
    /// The number of cells that only the second result has.
    pub new: usize,
}

impl Changes {
    /// Compares two results.
    #[must_use]
    pub fn between(before: &Comparison, after: &Comparison) -> Self {
        let mut found = Self {
            cells: Vec::new(),
            void: Vec::new(),
            gone: 0,
            new: 0,
        };
        for group in before.groups() {
            for engine in before.engines(&group) {
                if after.runs(&group, engine).is_empty() {
                    found.gone += 1;
                } else if let Some(change) = change(&group, engine, before, after) {
                    found.cells.push(change);
                } else {
                    found.void.push((group.clone(), engine));
                }
            }
        }
        for group in after.groups() {
            let new = after.engines(&group);
            let new = new.filter(|engine| before.runs(&group, *engine).is_empty());
            found.new += new.count();
        }
        found
    }

    /// Counts each engine's cells by meaning.
    #[must_use]
    pub fn balances(&self) -> BTreeMap<Engine, Balance> {
        let mut ratios: BTreeMap<Engine, Vec<f64>> = BTreeMap::new();
        let mut balances: BTreeMap<Engine, Balance> = BTreeMap::new();
        for cell in &self.cells {
            let balance = balances.entry(cell.engine).or_default();
            match cell.meaning {
                Meaning::Slower => balance.slower += 1,
                Meaning::Faster => balance.faster += 1,
                Meaning::Tie => balance.ties += 1,
                Meaning::Unknown => balance.unknown += 1,
            }
            ratios.entry(cell.engine).or_default().push(cell.ratio);
        }
        for (engine, ratios) in ratios {
            if let Some(balance) = balances.get_mut(&engine) {
                balance.mean = arithmetic::geometric_mean(&ratios);
            }
        }
        balances
    }
}

/// Returns `None` when the cell is void in one of the results.
fn change(
    group: &Group,
    engine: Engine,
    before: &Comparison,
    after: &Comparison,
) -> Option<Change> {
    let unit = after.runs(group, engine).first()?.unit.clone();
    let (runs, others) = (after.rates(group, engine)?, before.rates(group, engine)?);
    let (after, before) = (
        arithmetic::maximum(runs.iter().copied())?,
        arithmetic::maximum(others.iter().copied())?,
    );
    let ratio = arithmetic::ratio(after, before)?;
    Some(Change {
        group: group.clone(),
        engine,
        unit,
        before,
        after,
        ratio,
        meaning: match arithmetic::tie(&runs, &others) {
            None => Meaning::Unknown,
            Some(true) => Meaning::Tie,
            Some(false) if ratio < 1.0 => Meaning::Slower,
            Some(false) => Meaning::Faster,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::record::Line;
    use crate::results::sample;

    fn cell(engine: Engine, query: &str, rates: &[f64]) -> Vec<Line> {
        let numbered = (1..).zip(rates);
        numbered
            .map(|(run, rate)| Line::Run(sample::run(engine, query, 4, run, *rate)))
            .collect()
    }

    fn changes(before: &[Vec<Line>], after: &[Vec<Line>]) -> Changes {
        Changes::between(
            &Comparison::new(&before.concat()),
            &Comparison::new(&after.concat()),
        )
    }

    #[test]
    fn changes_computed_by_hand() {
        let ours = Engine::Peregrine;
        let before = [
            cell(ours, "A", &[100.0, 90.0, 95.0]),
            cell(ours, "B", &[100.0, 90.0, 95.0]),
            cell(ours, "C", &[100.0, 90.0, 95.0]),
            cell(Engine::InnoDb, "A", &[100.0]),
        ];
        let after = [
            cell(ours, "A", &[200.0, 190.0, 195.0]),
            cell(ours, "B", &[50.0, 49.0, 48.0]),
            cell(ours, "C", &[100.0, 108.0, 104.0]),
            cell(Engine::InnoDb, "A", &[300.0, 301.0]),
        ];
        let found = changes(&before, &after);
        let told: Vec<(&str, Meaning)> = found
            .cells
            .iter()
            .map(|cell| (cell.group.query.as_str(), cell.meaning))
            .collect();
        assert_eq!(
            told,
            [
                ("A", Meaning::Unknown),
                ("A", Meaning::Faster),
                ("B", Meaning::Slower),
                ("C", Meaning::Tie)
            ]
        );
        let balance = &found.balances()[&ours];
        assert_eq!((balance.faster, balance.slower, balance.ties), (1, 1, 1));
        // The cube root of 2 × ½ × 1.08.
        let mean = balance.mean.expect("a mean");
        assert!((mean - 1.08_f64.cbrt()).abs() < 1e-12, "{mean}");
        assert_eq!(found.balances()[&Engine::InnoDb].unknown, 1);
        // In the other direction, a faster cell is slower.
        let back = changes(&after, &before);
        assert_eq!(back.cells[1].meaning, Meaning::Slower);
        assert!((back.cells[1].ratio - 0.5).abs() < 1e-12);
    }

    #[test]
    fn cells_of_one_side_are_counted_and_void_ones_named() {
        let ours = Engine::Peregrine;
        let mut wrong = sample::run(ours, "B", 4, 1, 100.0);
        wrong.wrong = 1;
        let found = changes(
            &[cell(ours, "A", &[1.0, 2.0]), cell(ours, "B", &[1.0, 2.0])],
            &[
                vec![Line::Run(wrong)],
                cell(ours, "C", &[1.0]),
                cell(Engine::Aria, "C", &[1.0]),
            ],
        );
        assert!(found.cells.is_empty());
        assert_eq!((found.gone, found.new), (1, 2));
        assert_eq!(found.void.len(), 1);
        assert_eq!(found.void[0].0.query, "B");
        assert!(found.balances().is_empty());
    }
}
