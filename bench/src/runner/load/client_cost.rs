//! The cost of the clients themselves.
//!
//! The cells of some results run again on the null target, and the report compares their rates with the servers' rates.
//! Slow clients would make all servers look alike.

use std::fmt;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{Cell, CellAlignment, Table};

use super::load_generator::{make_ready, measure, Method, Question};
use super::pace::Pace;
use crate::results::comparison::Group;
use crate::results::figure::short;
use crate::results::file;
use crate::results::record::{Line, Run};
use crate::runner::plan::planned;
use crate::workload::Counters;
use peregrine_harness::arithmetic;
use peregrine_harness::engines::null::Null;
use peregrine_harness::engines::{Engine, Session, Target};
use peregrine_harness::error::{HarnessError, Result};

/// The clients' own cost in the cells of some results.
#[derive(Debug)]
pub struct Costs {
    /// Every cell in which a server was measured.
    pub cells: Vec<Cost>,
    /// The minimum ratio of the clients' rate to that of the fastest server.
    pub minimum: f64,
}

/// The clients' own cost in a cell.
///
/// Rates are statements a second, of all clients together.
#[derive(Debug, Clone, PartialEq)]
pub struct Cost {
    /// The cell.
    pub group: Group,
    /// The fastest engine in the cell, and the rate of its best run.
    pub fastest: (Engine, f64),
    /// The clients' rate on the null target.
    pub alone: f64,
}

impl Cost {
    /// The ratio of the clients' rate to the fastest server's rate.
    #[must_use]
    pub fn times(&self) -> f64 {
        arithmetic::ratio(self.alone, self.fastest.1).unwrap_or(0.0)
    }
}

impl Costs {
    /// Runs every cell of `lines` for `time` on the null target.
    ///
    /// Leaves out workloads whose transactions run once in each run, because there the clients' speed hardly matters.
    ///
    /// # Errors
    /// When the lines have no header; [`HarnessError::Interrupted`] when `stop` was set.
    pub fn measure(
        lines: &[Line],
        time: Duration,
        minimum: f64,
        stop: &AtomicBool,
    ) -> Result<Self> {
        let header = file::header(lines)
            .ok_or_else(|| HarnessError::Usage("the results have no header".to_owned()))?;
        let settings = &header.settings;
        let mut cells = Vec::new();
        for planned in settings.workloads.iter().filter(|planned| !planned.once) {
            let workload = planned::read(planned, settings)?;
            let counters = Counters::new(vec![1_000_000; workload.counters.len()]);
            for protocol in &settings.protocols {
                for query in &planned.cells {
                    for threads in &settings.threads {
                        let group = Group {
                            workload: planned.name.clone(),
                            protocol: *protocol,
                            query: query.clone(),
                            threads: *threads,
                        };
                        let Some(fastest) = fastest(lines, &group) else {
                            continue;
                        };
                        let question = Question {
                            workload: &workload,
                            cell: query,
                            counters: &counters,
                            answers: None,
                            engine: fastest.0,
                            protocol: *protocol,
                            seed: settings.seed,
                            placement: settings.placement,
                            run: 1,
                        };
                        let alone = alone(&question, *threads, time, stop)?;
                        cells.push(Cost {
                            group,
                            fastest,
                            alone,
                        });
                    }
                }
            }
        }
        Ok(Self { cells, minimum })
    }

    /// The cell in which a server was fastest.
    #[must_use]
    pub fn fastest(&self) -> Option<&Cost> {
        let by_rate = |a: &&Cost, b: &&Cost| a.fastest.1.total_cmp(&b.fastest.1);
        self.cells.iter().max_by(by_rate)
    }

    /// Returns whether the clients are fast enough for the cell in which a server was fastest.
    #[must_use]
    pub fn held(&self) -> bool {
        self.fastest()
            .is_some_and(|cost| cost.times() >= self.minimum)
    }
}

/// Statements a second of the clients on the null target.
fn alone(question: &Question<'_>, threads: u32, time: Duration, stop: &AtomicBool) -> Result<f64> {
    let sessions: Result<Vec<Box<dyn Session>>> = (0..threads).map(|_| Null.connect()).collect();
    let mut sessions = sessions?;
    make_ready(&mut sessions, question)?;
    let method = Method {
        time,
        until_steady: None,
        pace: Pace::Closed,
        stop,
        look: &mut |_| (),
    };
    let measured = measure(&mut sessions, question, method)?;
    let statements = measured.tally.statements as f64;
    Ok(arithmetic::ratio(statements, measured.time.as_secs_f64()).unwrap_or(0.0))
}

/// Returns the best valid run of a cell on a server.
fn fastest(lines: &[Line], group: &Group) -> Option<(Engine, f64)> {
    let rate = |run: &Run| arithmetic::ratio(run.statements as f64, run.seconds);
    let runs = lines.iter().filter_map(|line| match line {
        Line::Run(run)
            if run.is_valid() && Group::of(run) == *group && !run.engine.is_embedded() =>
        {
            Some((run.engine, rate(run)?))
        }
        _ => None,
    });
    runs.max_by(|a, b| a.1.total_cmp(&b.1))
}

/// Prints a table of the cells and a summary line.
impl fmt::Display for Costs {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = Table::new();
        table.load_style(UTF8_FULL_CONDENSED.with_rounded_corners());
        let head = ["query", "threads", "fastest", "statements/s", "null/s", "×"];
        table.set_header(head);
        for cost in &self.cells {
            let right = |text: String| Cell::new(text).set_alignment(CellAlignment::Right);
            table.add_row([
                Cell::new(&cost.group.query),
                right(cost.group.threads.to_string()),
                Cell::new(cost.fastest.0.title()),
                right(short(cost.fastest.1)),
                right(short(cost.alone)),
                right(format!("{:.0}", cost.times())),
            ]);
        }
        writeln!(out, "{table}")?;
        let word = if self.held() { "held" } else { "NOT HELD" };
        match self.fastest() {
            None => write!(out, "{word}: no server was measured"),
            Some(cost) => write!(
                out,
                "{word}: clients by themselves are {:.0} times as fast as the fastest server cell ({} required): {} of \
                 {}, {} threads: {} statements/s, on the null target {}",
                cost.times(),
                self.minimum,
                cost.fastest.0.title(),
                cost.group.query,
                cost.group.threads,
                short(cost.fastest.1),
                short(cost.alone),
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::sample;
    use peregrine_harness::engines::Embedded;

    /// Three runs of a cell: a slow one, the best, and one that is void.
    fn lines() -> Vec<Line> {
        let mut lines = vec![Line::Header(Box::new(sample::header()))];
        let cells = [
            (Engine::InnoDb, "READ_PK_POINT", 50, 0),
            (Engine::Peregrine, "READ_PK_POINT", 80, 0),
            (Engine::Peregrine, "READ_PK_POINT", 900, 1),
            (Engine::InnoDb, "READ_FTS", 3, 0),
            // An embedded store needs no server, and is faster than any server.
            (Engine::Embedded(Embedded::Lmdb), "READ_FTS", 90_000, 0),
        ];
        for (place, (engine, query, statements, wrong)) in cells.into_iter().enumerate() {
            let mut run = sample::run(engine, query, 4, u32::try_from(place).unwrap_or(9), 1.0);
            (run.statements, run.seconds, run.wrong) = (statements, 2.0, wrong);
            lines.push(Line::Run(run));
        }
        lines
    }

    #[test]
    fn every_measured_cell_is_run_by_clients_alone() {
        let stop = AtomicBool::new(false);
        let costs = Costs::measure(&lines(), Duration::from_millis(5), 20.0, &stop);
        let costs = costs.expect("measured");
        let fastest: Vec<_> = costs
            .cells
            .iter()
            .map(|cost| (cost.group.query.as_str(), cost.group.threads, cost.fastest))
            .collect();
        assert_eq!(
            fastest,
            [
                ("READ_PK_POINT", 4, (Engine::Peregrine, 40.0)),
                ("READ_FTS", 4, (Engine::InnoDb, 1.5)),
            ]
        );
        assert!(costs.cells.iter().all(|cost| cost.alone > 0.0));
        let text = costs.to_string();
        assert!(
            text.contains("Peregrine of READ_PK_POINT, 4 threads"),
            "{text}"
        );
    }

    #[test]
    fn the_fastest_server_cell_decides() {
        let stop = AtomicBool::new(false);
        let mut costs =
            Costs::measure(&lines(), Duration::from_millis(1), 20.0, &stop).expect("measured");
        for (alone, held) in [([800.0, 0.0], true), ([799.0, 1e9], false)] {
            for (cost, alone) in costs.cells.iter_mut().zip(alone) {
                cost.alone = alone;
            }
            assert_eq!(costs.held(), held);
            assert_eq!(costs.to_string().contains("NOT HELD"), !held);
        }
        costs.cells.clear();
        assert!(!costs.held(), "nothing was measured");
    }
}
