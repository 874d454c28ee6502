//! Compares our order entry with go-tpc's, on the same server in turns.
//!
//! Each client has its own tables. go-tpc also checks the tables that our clients have filled and changed.

use std::fmt;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::cell::{
    Cell, Limits, Verdict, {self},
};
use super::go_tpc::{Found, GoTpc, Place, CONDITIONS};
use super::ours::{sessions, turn, Before};
use super::tables;
use super::turn::{Medians, Turn};
use crate::runner::load::load_generator::Question;
use crate::workload::{Counters, Workload, MIX};
use peregrine_harness::engines::hosted::{run_all, Hosted};
use peregrine_harness::engines::mariadb::MariaDb;
use peregrine_harness::engines::{Engine, Placement, Protocol, ServerUrl, Session};
use peregrine_harness::error::{HarnessError, PathContext, Result};
use peregrine_harness::interrupt;

/// go-tpc's own schema.
const SCHEMA: &str = "go_tpc";

/// A port of this machine for a server, because go-tpc connects over TCP only.
#[derive(Debug, Clone, Copy)]
pub struct Port(u16);

impl Port {
    /// Returns a port that no process listens at.
    ///
    /// # Errors
    /// When this machine has no free port.
    pub fn free() -> Result<Self> {
        let place = Path::new("127.0.0.1");
        let listener = TcpListener::bind(("127.0.0.1", 0)).at("cannot listen at", place)?;
        let address = listener.local_addr().at("cannot listen at", place)?;
        Ok(Self(address.port()))
    }

    /// Returns the options by which a server listens at this port, for this machine only.
    #[must_use]
    pub fn server_options(self) -> Vec<String> {
        vec![
            "--skip-networking=0".to_owned(),
            "--bind-address=127.0.0.1".to_owned(),
            format!("--port={}", self.0),
        ]
    }
}

/// A request for the comparison.
#[derive(Debug, Clone)]
pub struct Request {
    /// The port at which the server listens.
    pub port: Port,
    /// The engines with tables for go-tpc's check.
    pub engines: Vec<Engine>,
    /// Those of `engines` that go-tpc's order entry runs on, too.
    pub compared: Vec<Engine>,
    /// The number of warehouses.
    pub warehouses: u32,
    /// The number of sessions.
    pub threads: u32,
    /// The protocol of our statements; go-tpc's are prepared.
    pub protocol: Protocol,
    /// The length of a turn.
    pub time: Duration,
    /// The number of counted turns of each client; one more turn precedes them.
    pub rounds: u32,
    /// Seed of our tables and parameters.
    pub seed: u64,
    /// The largest difference of the rates, as a fraction of go-tpc's.
    pub within: f64,
}

/// The result of the comparison.
#[derive(Debug)]
pub struct Outcome {
    request: Request,
    engines: Vec<OfEngine>,
}

/// The result of one engine.
#[derive(Debug)]
struct OfEngine {
    engine: Engine,
    cell: Cell,
    /// Our transactions before the check.
    transactions: u64,
    /// The failure that go-tpc's check found, if any.
    broken: Option<String>,
}

/// Fills the tables of each engine, runs the mix and checks them.
///
/// # Errors
/// When the server or go-tpc fails; [`HarnessError::Interrupted`] when the user wants to stop.
pub fn run(
    server: &Hosted,
    go_tpc: &GoTpc,
    request: &Request,
    mut told: impl FnMut(&str),
) -> Result<Outcome> {
    let set = [("warehouses", i64::from(request.warehouses))];
    let workload = tables::workload("orders", request.seed, &set)?;
    let mut outcome = Outcome {
        request: request.clone(),
        engines: Vec::new(),
    };
    for engine in &request.engines {
        let mut on = On {
            server,
            go_tpc,
            request,
            workload: &workload,
            engine: *engine,
            log: server.data_dir().with_file_name("go-tpc.log"),
        };
        outcome.engines.push(on.run(&mut told)?);
    }
    Ok(outcome)
}

/// The comparison of one engine.
struct On<'a> {
    server: &'a Hosted,
    go_tpc: &'a GoTpc,
    request: &'a Request,
    workload: &'a Workload,
    engine: Engine,
    log: PathBuf,
}

impl On<'_> {
    fn run(&mut self, told: &mut dyn FnMut(&str)) -> Result<OfEngine> {
        let (request, engine) = (self.request, self.engine);
        let title = engine.title();
        told(&format!("{title}: loading our tables"));
        tables::fill(self.server, self.workload, engine, request.seed)?;
        let compared = request.compared.contains(&engine);
        if compared {
            told(&format!("{title}: go-tpc loads its own"));
            self.administer(&[
                format!("SET GLOBAL default_storage_engine = {}", engine.sql_name()),
                format!("CREATE DATABASE {SCHEMA}"),
            ])?;
            self.go_tpc.prepare(&self.place(SCHEMA))?;
        }
        told(&format!("{title}: {} rounds", request.rounds));
        let name = format!("orders, {title}");
        let mut found = OfEngine {
            engine,
            cell: Cell::new(&name, request.threads),
            transactions: 0,
            broken: None,
        };
        let url = ServerUrl::parse(&format!("mysql://root@127.0.0.1:{}/", request.port.0))?;
        let mut sessions = sessions(&MariaDb::at(&url), request.threads)?;
        for round in 0..=request.rounds {
            if interrupt::requested() {
                return Err(HarnessError::Interrupted);
            }
            let begins = round % 2 == 0;
            let mut theirs = None;
            if compared && !begins {
                theirs = Some(self.other()?);
            }
            let ours = self.own(&mut sessions, round)?;
            if compared && begins {
                theirs = Some(self.other()?);
            }
            found.transactions += ours.done;
            if round > 0 {
                found.cell.ours.push(ours);
                found.cell.theirs.extend(theirs);
            }
        }
        drop(sessions);
        if compared {
            self.administer(&[format!("DROP DATABASE {SCHEMA}")])?;
        }
        told(&format!("{title}: go-tpc checks our tables"));
        let schema = engine.schema();
        // go-tpc looks up each customer's payments; the specification requires no index for this.
        self.administer(&[format!(
            "ALTER TABLE {schema}.history ADD INDEX (h_c_w_id, h_c_d_id, h_c_id)"
        )])?;
        if let Found::Broken(what) = self.go_tpc.check(&self.place(&schema))? {
            found.broken = Some(what);
        }
        Ok(found)
    }

    fn place<'p>(&'p self, schema: &'p str) -> Place<'p> {
        Place {
            port: self.request.port.0,
            schema,
            warehouses: self.request.warehouses,
            threads: self.request.threads,
            log: &self.log,
        }
    }

    fn administer(&self, statements: &[String]) -> Result<()> {
        run_all(&mut self.server.connect(None)?, statements)
    }

    /// Runs a turn of our clients.
    fn own(&self, sessions: &mut [Box<dyn Session>], round: u32) -> Result<Turn> {
        let counters = Counters::default();
        let question = Question {
            workload: self.workload,
            cell: MIX,
            counters: &counters,
            answers: None,
            engine: self.engine,
            protocol: self.request.protocol,
            seed: self.request.seed,
            placement: Placement::Free,
            run: round,
        };
        let transactions = &self.workload.transactions;
        let counted = transactions.iter().position(|t| t.name == "new_order");
        turn(self.server, sessions, &question, self.request.time, counted)
    }

    /// Runs a turn of go-tpc.
    fn other(&self) -> Result<Turn> {
        let before = Before::of(self.server)?;
        let (report, ran) = self.go_tpc.run(&self.place(SCHEMA), self.request.time)?;
        let (server_cpu, statements) = before.since(self.server)?;
        Ok(Turn {
            counted: report.new_orders,
            done: report.transactions,
            seconds: report.seconds,
            server_cpu,
            client_cpu: ran.cpu,
            statements: Some(statements),
            conflicts: report.conflicts,
            faults: report.faults,
        })
    }
}

impl OfEngine {
    fn is_compared(&self) -> bool {
        !self.cell.theirs.is_empty()
    }
}

impl Outcome {
    /// Returns whether the compared rates agree, every check found everything right, and no transaction of ours failed.
    #[must_use]
    pub fn held(&self) -> bool {
        let good = |of: &OfEngine| {
            let agrees = !of.is_compared() || self.verdict(of).holds();
            of.broken.is_none() && of.transactions > 0 && agrees && faults(&of.cell.ours) == 0
        };
        !self.engines.is_empty() && self.engines.iter().all(good)
    }

    /// The disk takes a part of the time, because every commit is synced.
    fn limits(&self) -> Limits {
        Limits {
            within: self.request.within,
            by_processor: false,
        }
    }

    fn verdict(&self, of: &OfEngine) -> Verdict {
        of.cell.verdict(self.limits())
    }
}

fn faults(turns: &[Turn]) -> u64 {
    turns.iter().map(|turn| turn.faults).sum()
}

/// Shows a table of the compared engines, and one line.
impl fmt::Display for Outcome {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (request, compared) = (&self.request, self.engines.iter());
        let compared: Vec<&OfEngine> = compared.filter(|of| of.is_compared()).collect();
        if !compared.is_empty() {
            let cells: Vec<Cell> = compared.iter().map(|of| of.cell.clone()).collect();
            let units = ("new orders/s", "transaction");
            writeln!(
                out,
                "{}",
                cell::table(&cells, self.limits(), "go-tpc", units)
            )?;
        }
        write!(
            out,
            "{}: orders, {} warehouses, {} threads",
            if self.held() { "held" } else { "NOT HELD" },
            request.warehouses,
            request.threads
        )?;
        for of in compared {
            write!(out, "; {}: ", of.engine.title())?;
            let Some(figures) = of.cell.figures() else {
                write!(out, "void")?;
                continue;
            };
            let (ours, theirs) = (&figures.ours, &figures.theirs);
            let statements = |of: &Medians| of.statements.unwrap_or(0.0);
            let conflicts = |turns: &[Turn]| turns.iter().map(|t| t.conflicts).sum::<u64>();
            write!(
                out,
                "{:.0} new orders a minute by our clients, {:.0} by go-tpc (ratio {:.2}, within {:.0} % required), statements \
                 a transaction {:.1} and {:.1}, conflicts {} (tried again) and {} (given up), medians of {} turns each",
                ours.rate * 60.0,
                theirs.rate * 60.0,
                figures.ratio,
                request.within * 100.0,
                statements(ours),
                statements(theirs),
                conflicts(&of.cell.ours),
                conflicts(&of.cell.theirs),
                request.rounds,
            )?;
        }
        for of in &self.engines {
            write!(
                out,
                "; go-tpc's check of our tables on {} after {} transactions: ",
                of.engine.title(),
                of.transactions
            )?;
            match &of.broken {
                None => write!(out, "{CONDITIONS} conditions hold")?,
                Some(what) => write!(out, "BROKEN, {what}")?,
            }
            let faults = faults(&of.cell.ours);
            if faults > 0 {
                write!(out, "; {faults} transactions of ours FAILED")?;
            }
        }
        Ok(())
    }
}
