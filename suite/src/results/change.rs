//! What changed between two results: every cell that both have, and whether its difference is more than
//! the runs' own.

use std::collections::BTreeMap;

use super::comparison::{Comparison, Group};
use crate::arithmetic;
use crate::engines::Engine;

/// A cell of both results.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// What was measured.
    pub group: Group,
    /// On which engine.
    pub engine: Engine,
    /// What the figures count.
    pub unit: String,
    /// The figure before.
    pub before: f64,
    /// The figure after.
    pub after: f64,
    /// The figure after over the one before.
    pub ratio: f64,
    /// What that means.
    pub meaning: Meaning,
}

/// What the difference of a cell's figures means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Meaning {
    /// Slower by more than runs differ.
    Slower,
    /// Faster by more than runs differ.
    Faster,
    /// No further apart than runs of the same cell.
    Tie,
    /// One side has a single run, so nobody knows how far runs differ.
    Unknown,
}

impl Meaning {
    /// The word for it.
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

/// What became of an engine's cells.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Balance {
    /// How many are faster.
    pub faster: usize,
    /// How many are slower.
    pub slower: usize,
    /// How many are ties.
    pub ties: usize,
    /// How many have a single run.
    pub unknown: usize,
    /// The geometric mean of the ratios, ties included.
    pub mean: Option<f64>,
}

/// All that changed.
#[derive(Debug, Clone, PartialEq)]
pub struct Changes {
    /// The cells that count in both, by group and engine.
    pub cells: Vec<Change>,
    /// Cells measured in both that are void in one: a wrong answer or an error.
    pub void: Vec<(Group, Engine)>,
    /// How many cells were measured before only.
    pub gone: usize,
    /// How many cells were measured after only.
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

    /// What became of each engine's cells.
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

/// `None` when the cell is void in one of them.
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
        // 2 × ½ × 1.08, of which the cube root.
        let mean = balance.mean.expect("a mean");
        assert!((mean - 1.08_f64.cbrt()).abs() < 1e-12, "{mean}");
        assert_eq!(found.balances()[&Engine::InnoDb].unknown, 1);
        // The other way round what was faster is slower.
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
