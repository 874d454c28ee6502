//! Results as a comparison: cells, their best runs and ratios to a baseline.

use std::collections::BTreeMap;

use super::record::{Line, Run};
use peregrine_harness::arithmetic;
use peregrine_harness::engines::{Engine, Protocol};

/// The cells that are compared with each other: one transaction of a workload (or its mix), one number of threads, one
/// protocol.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Group {
    /// The workload.
    pub workload: String,
    /// The protocol.
    pub protocol: Protocol,
    /// The transaction, or `mix`.
    pub query: String,
    /// Client threads.
    pub threads: u32,
}

impl Group {
    /// The group that a run belongs to.
    #[must_use]
    pub fn of(run: &Run) -> Self {
        Self {
            workload: run.workload.clone(),
            protocol: run.protocol,
            query: run.query.clone(),
            threads: run.threads,
        }
    }
}

/// The runs of a results file, by cell.
#[derive(Debug, Default)]
pub struct Comparison {
    cells: BTreeMap<(Group, Engine), Vec<Run>>,
}

/// The comparison of an engine with the baseline in a few numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// The geometric mean of the ratios.
    pub mean: f64,
    /// The smallest ratio and its group.
    pub minimum: (f64, Group),
    /// The number of cells that were compared.
    pub cells: usize,
    /// The number of the engine's cells that could not be compared, because one of the two cells is void or missing.
    pub void: usize,
}

impl Comparison {
    /// Sorts the runs among `lines` into cells.
    ///
    /// If a run occurs twice, the last one counts.
    #[must_use]
    pub fn new(lines: &[Line]) -> Self {
        let mut cells: BTreeMap<(Group, Engine), Vec<Run>> = BTreeMap::new();
        for line in lines {
            if let Line::Run(run) = line {
                let runs = cells.entry((Group::of(run), run.engine)).or_default();
                runs.retain(|other| other.run != run.run);
                runs.push(run.as_ref().clone());
            }
        }
        Self { cells }
    }

    /// Returns every group, in order.
    #[must_use]
    pub fn groups(&self) -> Vec<Group> {
        let mut groups: Vec<Group> = self.cells.keys().map(|(group, _)| group.clone()).collect();
        groups.dedup();
        groups
    }

    /// The engines that have runs of a group, in their order.
    pub fn engines<'c>(&'c self, group: &'c Group) -> impl Iterator<Item = Engine> + 'c {
        let of_group = self.cells.keys().filter(move |(other, _)| other == group);
        of_group.map(|(_, engine)| *engine)
    }

    /// The runs of a cell.
    #[must_use]
    pub fn runs(&self, group: &Group, engine: Engine) -> &[Run] {
        self.cells
            .get(&(group.clone(), engine))
            .map_or(&[], Vec::as_slice)
    }

    /// The units of the figures of a workload's cell; several if runs differ.
    #[must_use]
    pub fn units(&self, workload: &str, query: &str) -> Vec<String> {
        let mut units: Vec<String> = Vec::new();
        for ((group, _), runs) in &self.cells {
            if group.workload == workload && group.query == query {
                units.extend(runs.iter().map(|run| run.unit.clone()));
            }
        }
        units.sort();
        units.dedup();
        units
    }

    /// The rates of a cell's runs.
    ///
    /// `None` when there are no runs, or when a run had a wrong answer or an error: then its speed means nothing.
    #[must_use]
    pub fn rates(&self, group: &Group, engine: Engine) -> Option<Vec<f64>> {
        let runs = self.runs(group, engine);
        let counts = !runs.is_empty() && runs.iter().all(Run::is_valid);
        counts.then(|| runs.iter().map(|run| run.rate).collect())
    }

    /// The figure of a cell: the best of its runs, if all are valid.
    #[must_use]
    pub fn figure(&self, group: &Group, engine: Engine) -> Option<f64> {
        arithmetic::maximum(self.rates(group, engine)?)
    }

    /// Returns whether the figures of two engines in a group differ no more than runs of the same cell.
    ///
    /// `None` where that is unknown, for instance with a single run.
    #[must_use]
    pub fn tie(&self, group: &Group, engine: Engine, other: Engine) -> Option<bool> {
        arithmetic::tie(&self.rates(group, engine)?, &self.rates(group, other)?)
    }

    /// The ratio of an engine's figure to the baseline's.
    #[must_use]
    pub fn ratio(&self, group: &Group, engine: Engine, baseline: Engine) -> Option<f64> {
        arithmetic::ratio(self.figure(group, engine)?, self.figure(group, baseline)?)
    }

    /// Compares an engine with the baseline over all cells; `None` when no cell can be compared.
    #[must_use]
    pub fn summary(&self, engine: Engine, baseline: Engine) -> Option<Summary> {
        let groups = self.groups();
        let ratios: Vec<(f64, Group)> = groups
            .iter()
            .filter_map(|group| Some((self.ratio(group, engine, baseline)?, group.clone())))
            .collect();
        // A cell that an engine was not measured in does not count as void.
        let measured = |group: &&Group| !self.runs(group, engine).is_empty();
        let mine = groups.iter().filter(measured).count();
        let values: Vec<f64> = ratios.iter().map(|(ratio, _)| *ratio).collect();
        Some(Summary {
            mean: arithmetic::geometric_mean(&values)?,
            cells: ratios.len(),
            void: mine - ratios.len(),
            minimum: ratios.into_iter().min_by(|a, b| a.0.total_cmp(&b.0))?,
        })
    }

    /// Runs with wrong answers or errors.
    #[must_use]
    pub fn faulty(&self) -> Vec<&Run> {
        self.cells
            .values()
            .flatten()
            .filter(|run| !run.is_valid())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::sample;

    fn group(query: &str, threads: u32) -> Group {
        Group {
            workload: "normal".to_owned(),
            protocol: Protocol::Text,
            query: query.to_owned(),
            threads,
        }
    }

    /// Two queries at two numbers of threads.
    ///
    /// `InnoDB` has 100 everywhere (best of three); Peregrine has the given figures.
    fn comparison(ours: [f64; 4]) -> (Comparison, Vec<Line>) {
        let mut lines = Vec::new();
        let groups = [
            ("READ_PK_POINT", 1),
            ("READ_PK_POINT", 4),
            ("READ_FTS", 1),
            ("READ_FTS", 4),
        ];
        for ((query, threads), qps) in groups.into_iter().zip(ours) {
            for (run, part) in [(1, 0.9), (2, 1.0), (3, 0.95)] {
                lines.push(Line::Run(sample::run(
                    Engine::InnoDb,
                    query,
                    threads,
                    run,
                    100.0 * part,
                )));
                lines.push(Line::Run(sample::run(
                    Engine::Peregrine,
                    query,
                    threads,
                    run,
                    qps * part,
                )));
            }
        }
        (Comparison::new(&lines), lines)
    }

    #[test]
    fn best_of_three_and_summary_computed_by_hand() {
        let (comparison, _) = comparison([400.0, 100.0, 50.0, 50.0]);
        assert_eq!(comparison.groups().len(), 4);
        assert_eq!(
            comparison.figure(&group("READ_PK_POINT", 1), Engine::Peregrine),
            Some(400.0)
        );
        let summary = comparison
            .summary(Engine::Peregrine, Engine::InnoDb)
            .expect("a summary");
        // 4 × 1 × ½ × ½ = 1
        assert!((summary.mean - 1.0).abs() < 1e-12);
        assert!((summary.minimum.0 - 0.5).abs() < 1e-12);
        assert_eq!(summary.minimum.1.query, "READ_FTS");
        assert_eq!((summary.cells, summary.void), (4, 0));
        assert_eq!(comparison.summary(Engine::Aria, Engine::InnoDb), None);
    }

    #[test]
    fn one_wrong_answer_voids_its_cell() {
        let (_, mut lines) = comparison([400.0, 100.0, 50.0, 50.0]);
        for line in &mut lines {
            if let Line::Run(run) = line {
                if run.engine == Engine::Peregrine
                    && run.query == "READ_PK_POINT"
                    && run.threads == 1
                    && run.run == 3
                {
                    run.wrong = 1;
                }
            }
        }
        let comparison = Comparison::new(&lines);
        assert_eq!(
            comparison.figure(&group("READ_PK_POINT", 1), Engine::Peregrine),
            None
        );
        let summary = comparison
            .summary(Engine::Peregrine, Engine::InnoDb)
            .expect("a summary");
        assert_eq!((summary.cells, summary.void), (3, 1));
        // 1 × ½ × ½ = ¼. Its cube root is 0.63.
        assert!((summary.mean - 0.25_f64.cbrt()).abs() < 1e-12);
        assert_eq!(comparison.faulty().len(), 1);
    }

    #[test]
    fn engines_whose_runs_lie_as_far_apart_as_their_figures_tie() {
        // InnoDB: 90, 100, 95. Peregrine: 96.3, 107, 101.65; 110.7, 123, 116.85.
        let (comparison, lines) = comparison([107.0, 123.0, 50.0, 50.0]);
        let tie = |query, threads| {
            comparison.tie(&group(query, threads), Engine::Peregrine, Engine::InnoDb)
        };
        assert_eq!(tie("READ_PK_POINT", 1), Some(true));
        assert_eq!(tie("READ_PK_POINT", 4), Some(false));
        assert_eq!(tie("READ_PK_RANGE", 4), None);
        let first = |line: &&Line| matches!(line, Line::Run(run) if run.run == 1);
        let once: Vec<Line> = lines.iter().filter(first).cloned().collect();
        let once = Comparison::new(&once);
        let group = group("READ_PK_POINT", 1);
        assert_eq!(once.tie(&group, Engine::Peregrine, Engine::InnoDb), None);
        let engines: Vec<Engine> = once.engines(&group).collect();
        assert_eq!(engines, [Engine::InnoDb, Engine::Peregrine]);
    }

    #[test]
    fn a_run_done_again_counts_as_it_was_last() {
        let (_, mut lines) = comparison([400.0, 100.0, 50.0, 50.0]);
        lines.push(Line::Run(sample::run(
            Engine::InnoDb,
            "READ_FTS",
            4,
            2,
            10.0,
        )));
        let comparison = Comparison::new(&lines);
        assert_eq!(
            comparison.runs(&group("READ_FTS", 4), Engine::InnoDb).len(),
            3
        );
        assert_eq!(
            comparison.figure(&group("READ_FTS", 4), Engine::InnoDb),
            Some(95.0)
        );
    }
}
