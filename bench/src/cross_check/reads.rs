//! Compares queries of `normal` by our clients and by sysbench, in turns.

use std::fmt;
use std::time::Duration;

use super::cell::{
    Cell, Limits, Verdict, {self},
};
use super::ours::{sessions, turn, Before};
use super::sysbench::{Asked, Sysbench};
use super::tables;
use super::turn::Turn;
use crate::normal::{Answers, Generator};
use crate::runner::load::load_generator::Question;
use crate::workload::Counters;
use peregrine_harness::engines::hosted::Hosted;
use peregrine_harness::engines::mariadb::MariaDb;
use peregrine_harness::engines::{Engine, Placement, Protocol};
use peregrine_harness::error::{HarnessError, PathContext, Result};
use peregrine_harness::interrupt;

/// A request for the comparison.
#[derive(Debug, Clone)]
pub struct Request {
    /// The engine.
    pub engine: Engine,
    /// The number of rows in the table.
    pub rows: u32,
    /// The queries' names.
    pub queries: Vec<String>,
    /// The numbers of sessions.
    pub threads: Vec<u32>,
    /// The protocol of the statements.
    pub protocol: Protocol,
    /// The length of a turn, in whole seconds.
    pub time: Duration,
    /// The number of counted turns of each client; one more turn precedes them.
    pub rounds: u32,
    /// The seed of the table and of the parameters.
    pub seed: u64,
    /// The largest difference of the figures, as a fraction of sysbench's.
    pub within: f64,
}

/// The result of the comparison.
#[derive(Debug)]
pub struct Outcome {
    engine: Engine,
    rows: u32,
    protocol: Protocol,
    limits: Limits,
    rounds: u32,
    /// The cells, in the order of their measurement.
    pub cells: Vec<Cell>,
}

/// Fills the table and runs the queries.
///
/// # Errors
/// When the server or sysbench fails, or for an unknown query; [`HarnessError::Interrupted`] when the user wants to stop.
pub fn run(
    server: &Hosted,
    sysbench: &Sysbench,
    request: &Request,
    mut told: impl FnMut(&str),
) -> Result<Outcome> {
    let set = [("rows", i64::from(request.rows))];
    let workload = tables::workload("normal", request.seed, &set)?;
    for query in &request.queries {
        if !workload.cells().contains(&query.as_str()) {
            return Err(HarnessError::Usage(format!(
                "unknown query '{query}': the queries are {}",
                workload.cells().join(", ")
            )));
        }
    }
    told(&format!("loading {} rows", request.rows));
    tables::fill(server, &workload, request.engine, request.seed)?;
    let answers = Answers::compute(&Generator::new(request.seed, request.rows), |_| ());
    let (target, counters) = (MariaDb::new(server.socket()?), Counters::default());
    let dir = server.data_dir().with_file_name("sysbench");
    std::fs::create_dir_all(&dir).at("cannot create", &dir)?;
    let mut cells = Vec::new();
    for query in &request.queries {
        for threads in &request.threads {
            told(&format!("{query}, {threads} threads"));
            let mut sessions = sessions(&target, *threads)?;
            let mut cell = Cell::new(query, *threads);
            for round in 0..=request.rounds {
                if interrupt::requested() {
                    return Err(HarnessError::Interrupted);
                }
                let question = Question {
                    workload: &workload,
                    cell: query,
                    counters: &counters,
                    answers: Some(&answers),
                    engine: request.engine,
                    protocol: request.protocol,
                    seed: request.seed,
                    placement: Placement::Free,
                    run: round,
                };
                let asked = Asked {
                    query,
                    rows: request.rows,
                    protocol: request.protocol,
                    threads: *threads,
                    time: request.time,
                    seed: request.seed + u64::from(round) + 1,
                    socket: server.socket()?,
                    schema: &request.engine.schema(),
                    dir: &dir,
                };
                let own =
                    |sessions: &mut [_]| turn(server, sessions, &question, request.time, None);
                // The clients alternate in beginning, so that neither always runs after the other.
                let (ours, theirs) = if round % 2 == 0 {
                    let ours = own(&mut sessions)?;
                    (ours, other(server, sysbench, &asked)?)
                } else {
                    let theirs = other(server, sysbench, &asked)?;
                    (own(&mut sessions)?, theirs)
                };
                if round > 0 {
                    cell.ours.push(ours);
                    cell.theirs.push(theirs);
                }
            }
            cells.push(cell);
        }
    }
    Ok(Outcome {
        engine: request.engine,
        rows: request.rows,
        protocol: request.protocol,
        limits: Limits {
            within: request.within,
            by_processor: true,
        },
        rounds: request.rounds,
        cells,
    })
}

/// Runs a turn of sysbench.
fn other(server: &Hosted, sysbench: &Sysbench, asked: &Asked<'_>) -> Result<Turn> {
    let before = Before::of(server)?;
    let (report, ran) = sysbench.ask(asked)?;
    let (server_cpu, statements) = before.since(server)?;
    Ok(Turn {
        counted: report.queries,
        done: report.queries,
        seconds: report.seconds,
        server_cpu,
        client_cpu: ran.cpu,
        statements: Some(statements),
        conflicts: 0,
        faults: report.faults,
    })
}

impl Outcome {
    /// Returns whether the figures of all cells agree, or the client's cost explains the difference.
    #[must_use]
    pub fn held(&self) -> bool {
        !self.cells.is_empty() && self.verdicts().all(Verdict::holds)
    }

    fn verdicts(&self) -> impl Iterator<Item = Verdict> + '_ {
        self.cells.iter().map(|cell| cell.verdict(self.limits))
    }

    fn count(&self, wanted: Verdict) -> usize {
        self.verdicts().filter(|found| *found == wanted).count()
    }
}

/// Shows a table of the cells, and one line.
impl fmt::Display for Outcome {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let table = cell::table(&self.cells, self.limits, "sysbench", ("queries/s", "query"));
        writeln!(out, "{table}")?;
        let percent = self.limits.within * 100.0;
        let figures = |part: &dyn Fn(&cell::Figures) -> f64| {
            let all = self.cells.iter().filter_map(Cell::figures);
            let all: Vec<f64> = all.map(|figures| part(&figures)).collect();
            let minimum = peregrine_harness::arithmetic::minimum(all.iter().copied());
            let most = peregrine_harness::arithmetic::maximum(all.iter().copied());
            format!(
                "{:.2} to {:.2}",
                minimum.unwrap_or(0.0),
                most.unwrap_or(0.0)
            )
        };
        write!(
            out,
            "{}: {} of {} cells of {} ({} rows, {} protocol) have sysbench's rate within {percent:.0} %, {} more with \
             sysbench's client instead of ours, {} differ, {} are void; our rate over sysbench's {}, server's processor \
             time a query {}; medians of {} turns each",
            if self.held() { "held" } else { "NOT HELD" },
            self.count(Verdict::Agrees),
            self.cells.len(),
            self.engine.title(),
            self.rows,
            self.protocol.name(),
            self.count(Verdict::Client),
            self.count(Verdict::Differs),
            self.count(Verdict::Void),
            figures(&|figures| figures.ratio),
            figures(&|figures| figures.server),
            self.rounds,
        )
    }
}
