//! The order of the matrix.
//!
//! Engines are measured side by side. In a group (one query at one number of threads), first come the first runs of all
//! engines, then the second runs, then the third. Each round begins with another engine. So a disturbance on the
//! machine affects all engines alike, and ratios stay comparable when absolute figures vary.

use std::collections::HashSet;

use crate::results::comparison::Group;
use crate::results::record::{Line, RunSettings};
use crate::workload::{Mode, Workload};
use peregrine_harness::engines::Engine;

/// One effective run that is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Step {
    /// The engine.
    pub engine: Engine,
    /// The number of the run in its cell, from 1.
    pub run: u32,
    /// Whether a warm-up comes first.
    pub warm_up: bool,
}

/// A group and the runs that are left in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Work {
    /// The group.
    pub group: Group,
    /// Its runs, in order.
    pub steps: Vec<Step>,
}

/// Returns the runs that the results contain.
#[must_use]
pub fn done(lines: &[Line]) -> HashSet<(Group, Engine, u32)> {
    lines
        .iter()
        .filter_map(|line| match line {
            Line::Run(run) => Some((Group::of(run), run.engine, run.run)),
            _ => None,
        })
        .collect()
}

/// Returns what is left of the matrix that `settings` describe, for some cells of a workload.
///
/// Leaves out an engine without transactions where a cell needs them. Leaves out an embedded store where the cell is no
/// query of table `normal`. An embedded store has no protocol, so it runs only with the first.
#[must_use]
pub fn remaining<S: std::hash::BuildHasher>(
    settings: &RunSettings,
    workload: &Workload,
    cells: &[String],
    done: &HashSet<(Group, Engine, u32), S>,
) -> Vec<Work> {
    let mut work = Vec::new();
    let once = workload.mode == Mode::Once;
    let threads = if once {
        &[1]
    } else {
        settings.threads.as_slice()
    };
    for protocol in &settings.protocols {
        for cell in cells {
            let mut engines = engines(settings, workload, cell);
            if settings.protocols.first() != Some(protocol) {
                engines.retain(|engine| !engine.is_embedded());
            }
            for threads in threads {
                let group = Group {
                    workload: workload.name.clone(),
                    protocol: *protocol,
                    query: cell.clone(),
                    threads: *threads,
                };
                let mut steps = steps(settings, &engines, &group, work.len(), done);
                if once {
                    steps.iter_mut().for_each(|step| step.warm_up = false);
                }
                if !steps.is_empty() {
                    work.push(Work { group, steps });
                }
            }
        }
    }
    work
}

/// Returns the engines that a cell is measured on.
#[must_use]
pub fn engines(settings: &RunSettings, workload: &Workload, cell: &str) -> Vec<Engine> {
    let all = workload.needs_transactions(cell);
    let embedded = workload.is_normal_query(cell);
    let engines = settings.engines.iter().copied();
    engines
        .filter(|engine| !all || settings.has_transactions(*engine))
        .filter(|engine| embedded || !engine.is_embedded())
        .collect()
}

fn steps<S: std::hash::BuildHasher>(
    settings: &RunSettings,
    engines: &[Engine],
    group: &Group,
    turn: usize,
    done: &HashSet<(Group, Engine, u32), S>,
) -> Vec<Step> {
    let mut warm = HashSet::new();
    let mut steps = Vec::new();
    for run in 1..=settings.runs {
        let mut engines = engines.to_vec();
        if !engines.is_empty() {
            let first = (turn + run as usize) % engines.len();
            engines.rotate_left(first);
        }
        for engine in engines {
            if !done.contains(&(group.clone(), engine, run)) {
                steps.push(Step {
                    engine,
                    run,
                    warm_up: warm.insert(engine),
                });
            }
        }
    }
    steps
}

/// The planned time of the work, in seconds; slow queries take longer.
#[must_use]
pub fn planned_seconds(settings: &RunSettings, work: &Work) -> f64 {
    work.steps
        .iter()
        .map(|step| {
            settings.run_s
                + if step.warm_up {
                    settings.warm_up_s
                } else {
                    0.0
                }
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::sample;
    use peregrine_harness::engines::Protocol;

    /// Returns what is left of the sample's matrix.
    fn remaining(settings: &RunSettings, done: &HashSet<(Group, Engine, u32)>) -> Vec<Work> {
        let planned = &settings.workloads[0];
        let workload = Workload::read(
            &planned.text,
            "normal",
            &crate::workload::Options::default(),
        )
        .expect("a workload");
        super::remaining(settings, &workload, &planned.cells, done)
    }

    #[test]
    fn a_fresh_matrix_has_every_run_once_and_one_warm_up_per_cell() {
        let settings = sample::settings();
        let work = remaining(&settings, &HashSet::new());
        assert_eq!(work.len(), 2 * 2);
        for group in &work {
            assert_eq!(group.steps.len(), 2 * 3);
            let runs: HashSet<_> = group.steps.iter().map(|s| (s.engine, s.run)).collect();
            assert_eq!(runs.len(), 6);
            assert_eq!(group.steps.iter().filter(|step| step.warm_up).count(), 2);
            // Rounds: no engine is more than one run ahead of another.
            let order: Vec<u32> = group.steps.iter().map(|step| step.run).collect();
            assert_eq!(order, [1, 1, 2, 2, 3, 3]);
            assert!((planned_seconds(&settings, group) - (2.0 * 0.01 + 6.0 * 0.02)).abs() < 1e-9);
        }
        let first: HashSet<Engine> = work[0].steps.iter().step_by(2).map(|s| s.engine).collect();
        assert_eq!(first.len(), 2, "each round begins with another engine");
    }

    #[test]
    fn resuming_at_any_point_does_exactly_what_is_missing() {
        let settings = sample::settings();
        let all: Vec<(Group, Step)> = remaining(&settings, &HashSet::new())
            .into_iter()
            .flat_map(|work| {
                let group = work.group;
                work.steps
                    .into_iter()
                    .map(move |step| (group.clone(), step))
            })
            .collect();
        for stopped in 0..=all.len() {
            let lines: Vec<Line> = all[..stopped]
                .iter()
                .map(|(group, step)| {
                    Line::Run(sample::run(
                        step.engine,
                        &group.query,
                        group.threads,
                        step.run,
                        1.0,
                    ))
                })
                .collect();
            let left: HashSet<_> = remaining(&settings, &done(&lines))
                .into_iter()
                .flat_map(|work| {
                    let group = work.group;
                    work.steps
                        .into_iter()
                        .map(move |s| (group.clone(), s.engine, s.run))
                })
                .collect();
            let missing: HashSet<_> = all[stopped..]
                .iter()
                .map(|(group, step)| (group.clone(), step.engine, step.run))
                .collect();
            assert_eq!(left, missing, "stopped after {stopped}");
        }
    }

    #[test]
    fn engines_resumed_in_the_middle_of_a_cell_are_warmed_up_again() {
        let settings = sample::settings();
        let work = remaining(&settings, &HashSet::new());
        let mut done = HashSet::new();
        for step in &work[0].steps[..3] {
            done.insert((work[0].group.clone(), step.engine, step.run));
        }
        let again = remaining(&settings, &done);
        assert_eq!(again[0].steps.len(), 3);
        let warmed: HashSet<Engine> = again[0]
            .steps
            .iter()
            .filter(|s| s.warm_up)
            .map(|s| s.engine)
            .collect();
        assert_eq!(warmed.len(), 2);
    }

    #[test]
    fn cells_that_need_transactions_leave_engines_without_them_out() {
        let settings = RunSettings {
            engines: Engine::ALL.to_vec(),
            ..sample::settings()
        };
        let oltp = crate::workload::builtin::ALL[2];
        let workload = Workload::read(oltp.text, oltp.name, &crate::workload::Options::default())
            .expect("a workload");
        assert_eq!(engines(&settings, &workload, "read_only"), Engine::ALL);
        assert_eq!(
            engines(&settings, &workload, "read_write"),
            [Engine::InnoDb, Engine::MyRocks, Engine::Peregrine]
        );
    }

    #[test]
    fn embedded_stores_do_the_queries_of_normal_once_whatever_the_protocols() {
        let embedded = Engine::Embedded(peregrine_harness::engines::Embedded::Lmdb);
        let settings = RunSettings {
            engines: vec![Engine::InnoDb, embedded],
            protocols: vec![Protocol::Prepared, Protocol::Text],
            ..sample::settings()
        };
        let cells = |work: &[Work], engine: Engine| -> Vec<(Protocol, usize)> {
            let steps = work.iter().map(|work| {
                let of_engine = work.steps.iter().filter(|step| step.engine == engine);
                (work.group.protocol, of_engine.count())
            });
            steps.filter(|(_, count)| *count > 0).collect()
        };
        let work = remaining(&settings, &HashSet::new());
        assert_eq!(cells(&work, Engine::InnoDb).len(), 2 * 2 * 2);
        assert_eq!(cells(&work, embedded), [(Protocol::Prepared, 3); 4]);

        let workload = |text: &str, set: &[(&str, i64)]| {
            let set = set.iter();
            let options = crate::workload::Options {
                set: set
                    .map(|(name, value)| ((*name).to_owned(), *value))
                    .collect(),
                ..crate::workload::Options::default()
            };
            Workload::read(text, "a file", &options).expect("a workload")
        };
        let [normal, join, ..] = crate::workload::builtin::ALL;
        for (workload, cell, takes_part) in [
            (workload(normal.text, &[]), "READ_FTS", true),
            (workload(normal.text, &[("writers", 2)]), "READ_FTS", false),
            (workload(join.text, &[]), "JOIN", false),
        ] {
            let engines = engines(&settings, &workload, cell);
            assert_eq!(engines.contains(&embedded), takes_part, "{cell}");
            assert!(engines.contains(&Engine::InnoDb));
        }
    }
}
