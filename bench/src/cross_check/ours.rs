//! Runs a turn of our own clients.

use std::time::Duration;

use mysql::prelude::Queryable;

use super::turn::Turn;
use crate::runner::load::load_generator::{make_ready, measure, Latencies, Method, Question};
use crate::runner::load::pace::Pace;
use peregrine_harness::engines::hosted::Hosted;
use peregrine_harness::engines::{Session, Target};
use peregrine_harness::error::{HarnessError, Result, StatementContext};
use peregrine_harness::interrupt;
use peregrine_harness::server::process::Process;

/// The server's processor time and its count of statements before a turn.
#[derive(Debug, Clone, Copy)]
pub(super) struct Before {
    server: Process,
    cpu: f64,
    statements: u64,
}

impl Before {
    /// Reads them from the server.
    pub fn of(server: &Hosted) -> Result<Self> {
        let process = server.process()?;
        let statements = asked(server)?;
        Ok(Self {
            server: process,
            cpu: taken(process)?,
            statements,
        })
    }

    /// Returns the processor time and the statements since then.
    pub fn since(&self, server: &Hosted) -> Result<(f64, u64)> {
        let cpu = taken(self.server)? - self.cpu;
        // A few of the statements are this function's own.
        Ok((cpu, asked(server)?.saturating_sub(self.statements)))
    }
}

fn taken(process: Process) -> Result<f64> {
    let cpu = process.cpu_seconds();
    cpu.ok_or_else(|| HarnessError::Server("the server has ended by itself".to_owned()))
}

/// Returns how many statements the server has got so far.
fn asked(server: &Hosted) -> Result<u64> {
    let statement = "SHOW GLOBAL STATUS LIKE 'Questions'";
    let row: Option<(String, u64)> = server
        .connect(None)?
        .query_first(statement)
        .running(statement)?;
    Ok(row.map_or(0, |(_, count)| count))
}

/// Opens `count` sessions.
pub(super) fn sessions(target: &dyn Target, count: u32) -> Result<Vec<Box<dyn Session>>> {
    (0..count).map(|_| target.connect()).collect()
}

/// Runs a turn of length `time`.
///
/// Its figure counts the transactions of kind `counted`, or all transactions if that is `None`.
pub(super) fn turn(
    server: &Hosted,
    sessions: &mut [Box<dyn Session>],
    question: &Question<'_>,
    time: Duration,
    counted: Option<usize>,
) -> Result<Turn> {
    make_ready(sessions, question)?;
    let before = Before::of(server)?;
    let own = || Process::current().and_then(|process| process.cpu_seconds());
    let client = own();
    let method = Method {
        time,
        until_steady: None,
        pace: Pace::Closed,
        stop: interrupt::flag(),
        look: &mut |_| (),
    };
    let measured = measure(sessions, question, method)?;
    let (server_cpu, statements) = before.since(server)?;
    let (Some(from), Some(to)) = (client, own()) else {
        return Err(HarnessError::Server(
            "what the clients take can't be read from /proc".to_owned(),
        ));
    };
    let tally = &measured.tally;
    if let Some(problem) = &tally.problem {
        eprintln!("{problem}");
    }
    Ok(Turn {
        counted: match counted {
            Some(kind) => measured.kinds.get(&kind).map_or(0, Latencies::len),
            None => tally.transactions,
        },
        done: tally.transactions,
        seconds: measured.time.as_secs_f64(),
        server_cpu,
        client_cpu: to - from,
        statements: Some(statements),
        conflicts: tally.conflicts.values().sum(),
        faults: tally.errors + tally.wrong,
    })
}
