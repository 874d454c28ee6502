//! Measures the matrix: every step in its order.
//!
//! Each result is written at once.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::AtomicBool;
use std::sync::Arc;
use std::time::Duration;

use super::kept::Kept;
use super::load::background_load;
use super::load::live_counters::Steadiness;
use super::load::load_generator::{make_ready, measure, Measured, Method, Question, Tally};
use super::load::pace::Pace;
use super::measured::host::Host;
use super::plan::matrix::{planned_seconds, Step, Work};
use super::progress::Progress;
use crate::normal::Answers;
use crate::results::comparison::Group;
use crate::results::figure::shown;
use crate::results::record::{Deferred, Kind, Line, Run, RunSettings, WarmUp};
use crate::workload::{Client, Counters, Mode, Transaction, Workload, MIX};
use peregrine_harness::arithmetic;
use peregrine_harness::engines::{Datum, Engine, Protocol, RowSink, Session, Statement, Value};
use peregrine_harness::error::{HarnessError, Result};
use peregrine_harness::server::process::Process;

/// The work of a measurement, and where its results are written.
pub struct Measuring<'a> {
    /// The settings.
    pub settings: &'a RunSettings,
    /// The workload.
    pub workload: &'a Workload,
    /// Its right answers, if the workload is on table `normal`.
    pub answers: Option<&'a Answers>,
    /// Set when the user wants to stop.
    pub stop: &'a AtomicBool,
    /// Called with every line of the results.
    pub write: &'a mut dyn FnMut(&Line) -> Result<()>,
    /// Shows the progress.
    pub progress: &'a mut Progress,
}

/// The problems of a warm-up, which are charged to the cell's first run.
#[derive(Debug, Clone, Default)]
struct Debt {
    warm_up: Option<WarmUp>,
    errors: u64,
    wrong: u64,
    problem: Option<String>,
}

impl Measuring<'_> {
    /// Measures all groups.
    ///
    /// # Errors
    /// [`HarnessError::Interrupted`] when the user stops it; otherwise when the host can't be restored after a failure,
    /// or results can't be written.
    pub fn all(&mut self, work: &[Work], host: &mut dyn Host) -> Result<()> {
        let planned = work
            .iter()
            .map(|work| planned_seconds(self.settings, work))
            .sum();
        self.progress.matrix(work.len(), planned);
        for work in work {
            self.group(work, host)?;
        }
        Ok(())
    }

    fn group(&mut self, work: &Work, host: &mut dyn Host) -> Result<()> {
        let group = &work.group;
        let mut debts: HashMap<Engine, Debt> = HashMap::new();
        let mut best: Vec<(Engine, Option<f64>)> = Vec::new();
        for step in &work.steps {
            if step.warm_up {
                let warmed = self.ask(group, step.engine, 0, self.settings.warm_up_s, host)?;
                let steady = self.settings.steady_percent.map(|_| warmed.steady);
                debts.insert(
                    step.engine,
                    Debt {
                        warm_up: (!warmed.time.is_zero()).then(|| WarmUp {
                            seconds: rounded(warmed.time.as_secs_f64(), 1e6),
                            steady,
                        }),
                        errors: warmed.tally.errors,
                        wrong: warmed.tally.wrong,
                        problem: warmed.tally.problem,
                    },
                );
                self.progress.advance(self.settings.warm_up_s);
            }
            let fresh = self.make_fresh(group, step.engine, host);
            let before = Usage::now(host, step.engine);
            let measured = match fresh {
                Ok(()) => self.ask(group, step.engine, step.run, self.run_s(), host)?,
                Err(HarnessError::Interrupted) => return Err(HarnessError::Interrupted),
                Err(error) => self.failed(&error, step.engine, host)?,
            };
            let used = Usage::now(host, step.engine).since(before);
            self.progress.advance(self.settings.run_s);
            let mut debt = debts.remove(&step.engine).unwrap_or_default();
            let deferred = self.drain(group, step.engine, &mut debt, host)?;
            if measured.tally.errors == 0 {
                if let Some(wrong) = self.checked(group, step.engine, host)? {
                    debt.wrong += 1;
                    debt.problem.get_or_insert(wrong);
                }
            }
            for broken in self.broken_conditions(step.engine, host)? {
                debt.wrong += 1;
                debt.problem.get_or_insert(broken);
            }
            let Kept {
                durability,
                cache_bytes,
            } = host.kept(step.engine);
            let run = Run {
                durability,
                cache_bytes,
                server_peak_rss_bytes: host.peak_resident_bytes(step.engine),
                server_cpu_s: used.server,
                client_cpu_s: used.client,
                deferred,
                ..self.record(group, step, &measured, debt)?
            };
            if let Some(problem) = &run.problem {
                self.progress.note(&format!(
                    "{} on {}, {} threads: {} wrong, {} failed: {problem}",
                    run.query,
                    run.engine.title(),
                    run.threads,
                    run.wrong,
                    run.errors
                ));
            }
            let figure = run.is_valid().then_some(run.rate);
            match best.iter_mut().find(|(engine, _)| *engine == step.engine) {
                Some((_, so_far)) => {
                    *so_far = match (*so_far, figure) {
                        (Some(a), Some(b)) => Some(a.max(b)),
                        _ => None,
                    };
                }
                None => best.push((step.engine, figure)),
            }
            (self.write)(&Line::Run(Box::new(run)))?;
        }
        best.sort_by_key(|(engine, _)| *engine);
        self.progress
            .group_done(&described(group, &self.workload.unit(&group.query), &best));
        Ok(())
    }

    /// Makes the engine do the deferred work of a run that wrote; returns the cost.
    fn drain(
        &mut self,
        group: &Group,
        engine: Engine,
        debt: &mut Debt,
        host: &mut dyn Host,
    ) -> Result<Option<Deferred>> {
        if !self.workload.writes(&group.query) {
            return Ok(None);
        }
        self.progress.run(&format!(
            "{} {}, {} threads, {}, what was put off",
            group.workload,
            group.query,
            group.threads,
            engine.title()
        ));
        match host.drain(engine) {
            Ok(deferred) => Ok(deferred),
            Err(HarnessError::Interrupted) => Err(HarnessError::Interrupted),
            Err(error) => {
                let mut problem = Some(error.to_string());
                recover(host, engine, &mut problem)?;
                debt.errors += 1;
                debt.problem = debt.problem.take().or(problem);
                Ok(None)
            }
        }
    }

    /// The pace of the clients: a closed loop for a transaction that runs once in each run.
    fn pace(&self) -> Pace {
        match self.settings.rate {
            Some(rate) if self.workload.mode != Mode::Once => Pace::Open { rate },
            _ => Pace::Closed,
        }
    }

    /// The length of a run, in seconds; clients finish transactions that have begun.
    fn run_s(&self) -> f64 {
        if self.workload.mode == Mode::Once {
            0.0
        } else {
            self.settings.run_s
        }
    }

    /// Returns the transaction of a cell, where each runs once in a run.
    fn once(&self, group: &Group) -> Option<(usize, &Transaction)> {
        let at = match self.workload.transactions_of(&group.query)[..] {
            [only] if self.workload.mode == Mode::Once => only,
            _ => return None,
        };
        Some((at, self.workload.transactions.get(at)?))
    }

    /// Loads the tables again that the next run of a cell needs unchanged.
    fn make_fresh(&self, group: &Group, engine: Engine, host: &mut dyn Host) -> Result<()> {
        match self.once(group) {
            Some((_, transaction)) if !transaction.fresh.is_empty() => {
                host.load_again(self.workload, engine, &transaction.fresh)
            }
            _ => Ok(()),
        }
    }

    /// Runs the checks after a transaction that runs once in a run, and returns the first problem.
    fn checked(
        &self,
        group: &Group,
        engine: Engine,
        host: &mut dyn Host,
    ) -> Result<Option<String>> {
        let Some((at, transaction)) = self.once(group) else {
            return Ok(None);
        };
        if transaction.checks.is_empty() {
            return Ok(None);
        }
        let counters = Counters::default();
        let mut client = Client::new(self.workload, &counters, None, (0, 0), (0, 1));
        let sessions = host.sessions(engine, 1)?;
        let Some(session) = sessions.first_mut() else {
            return Ok(None);
        };
        let prepared = session.prepare(engine, group.protocol, &self.workload.statements);
        let done = prepared.and_then(|()| client.check(at, session.as_mut()));
        Ok(match done {
            Ok(done) => done.wrong,
            Err(error) => Some(error.to_string()),
        })
    }

    /// Measures one run.
    ///
    /// Counts all failures, and restores the host after them.
    fn ask(
        &mut self,
        group: &Group,
        engine: Engine,
        run: u32,
        seconds: f64,
        host: &mut dyn Host,
    ) -> Result<Measured> {
        let what = if run == 0 {
            "warm-up".to_owned()
        } else {
            format!("run {run}")
        };
        self.progress.run(&format!(
            "{} {}, {} threads, {}, {what}",
            group.workload,
            group.query,
            group.threads,
            engine.title()
        ));
        let time = Duration::from_secs_f64(seconds.max(0.0));
        let threads = group.threads as usize;
        let sessions =
            match host.sessions(engine, threads + background_load::sessions(self.workload)) {
                Ok(sessions) => sessions,
                Err(error) => return self.failed(&error, engine, host),
            };
        let counters = match self.counters(engine, sessions) {
            Ok(counters) => counters,
            Err(error) => return self.failed(&error, engine, host),
        };
        let question = Question {
            workload: self.workload,
            cell: &group.query,
            counters: &counters,
            answers: self.answers,
            engine,
            protocol: group.protocol,
            seed: self.settings.seed,
            run,
            placement: self.settings.placement,
        };
        let warming_up = run == 0;
        let steady = self.settings.steady_percent.filter(|_| warming_up);
        // The warm-up is a closed loop, which fills caches soonest.
        let pace = if warming_up {
            Pace::Closed
        } else {
            self.pace()
        };
        let progress = &mut *self.progress;
        let method = Method {
            time,
            until_steady: steady.map(Steadiness::within),
            pace,
            stop: self.stop,
            look: &mut |glance| progress.look(glance),
        };
        let (asking, background) = sessions.split_at_mut(threads.min(sessions.len()));
        // The background load begins when everything else is ready.
        let both = make_ready(asking, &question).and_then(|()| {
            let work = || measure(asking, &question, method);
            background_load::during(background, &question, work)
        });
        let mut measured = match both {
            Ok((mut measured, ran)) => {
                measured.tally.charge(&ran.tally);
                measured.beside = ran.done;
                measured
            }
            Err(HarnessError::Interrupted) => return Err(HarnessError::Interrupted),
            Err(error) => return self.failed(&error, engine, host),
        };
        if measured.tally.errors > 0 {
            recover(host, engine, &mut measured.tally.problem)?;
        }
        Ok(measured)
    }

    /// Reads the maximum values of the columns whose values clients count upwards.
    fn counters(&self, engine: Engine, sessions: &mut [Box<dyn Session>]) -> Result<Counters> {
        let mut newest = Vec::new();
        if let Some(session) = sessions.first_mut() {
            for counter in &self.workload.counters {
                let (table, column) = (&counter.table, &counter.column);
                let sql = format!("SELECT coalesce(max({column}), 0) FROM {table}");
                newest.push(number(session.as_mut(), engine, &sql)?);
            }
        }
        Ok(Counters::new(newest))
    }

    /// Returns the conditions on the tables that do not hold.
    fn broken_conditions(&self, engine: Engine, host: &mut dyn Host) -> Result<Vec<String>> {
        let mut broken = Vec::new();
        for condition in &self.workload.conditions {
            let sessions = host.sessions(engine, 1)?;
            let Some(session) = sessions.first_mut() else {
                break;
            };
            match number(session.as_mut(), engine, &condition.sql) {
                Ok(0) => {}
                Ok(count) => broken.push(format!(
                    "it must be true that {}, and {count} rows contradict it",
                    condition.name
                )),
                Err(error) => broken.push(format!("{}: {error}", condition.name)),
            }
        }
        Ok(broken)
    }

    /// The result of a run that could not begin: one error.
    fn failed(
        &self,
        error: &HarnessError,
        engine: Engine,
        host: &mut dyn Host,
    ) -> Result<Measured> {
        let mut problem = Some(error.to_string());
        recover(host, engine, &mut problem)?;
        Ok(Measured {
            time: Duration::ZERO,
            tally: Tally {
                errors: 1,
                problem,
                ..Tally::default()
            },
            kinds: BTreeMap::new(),
            beside: BTreeMap::new(),
            left: 0,
            steady: false,
            seconds: Vec::new(),
        })
    }

    fn record(&self, group: &Group, step: &Step, measured: &Measured, debt: Debt) -> Result<Run> {
        let all = measured.latencies()?;
        let at = |quantile: f64| all.value_at_quantile(quantile);
        let tally = &measured.tally;
        let is_mix = group.query == MIX;
        let figure = self.workload.figure.as_ref().filter(|_| is_mix);
        let counted = match figure {
            None => tally.transactions,
            Some(figure) => measured
                .kinds
                .get(&figure.transaction)
                .map_or(0, hdrhistogram::Histogram::len),
        };
        let seconds = measured.time.as_secs_f64();
        let per = figure.map_or(1.0, |figure| figure.seconds);
        let rate = if seconds > 0.0 {
            counted as f64 / seconds * per
        } else {
            0.0
        };
        Ok(Run {
            workload: group.workload.clone(),
            query: group.query.clone(),
            engine: step.engine,
            protocol: group.protocol,
            threads: group.threads,
            run: step.run,
            seconds: rounded(seconds, 1e6),
            queries: tally.transactions,
            statements: tally.statements,
            // A rate below one stands for a time and needs more digits.
            rate: rounded(rate, if rate < 1.0 { 1e9 } else { 1e3 }),
            unit: self.workload.unit(&group.query),
            p50_us: at(0.50),
            p95_us: at(0.95),
            p99_us: at(0.99),
            max_us: all.max(),
            kinds: if is_mix {
                self.kinds(measured)
            } else {
                BTreeMap::new()
            },
            rolled_back: tally.rolled_back,
            conflicts: tally
                .conflicts
                .iter()
                .map(|(code, count)| (code.to_string(), *count))
                .collect(),
            beside: measured
                .beside
                .iter()
                .filter_map(|(at, done)| {
                    let transaction = self.workload.transactions.get(*at)?;
                    Some((transaction.name.clone(), *done))
                })
                .collect(),
            due_rate: match self.pace() {
                Pace::Open { rate } => Some(rate),
                Pace::Closed => None,
            },
            left: measured.left,
            warm_up: debt.warm_up,
            by_second: if measured.seconds.len() > 1 {
                measured.seconds.clone()
            } else {
                Vec::new()
            },
            deferred: None,
            errors: tally.errors + debt.errors,
            wrong: tally.wrong + debt.wrong,
            problem: debt.problem.or_else(|| tally.problem.clone()),
            durability: String::new(),
            cache_bytes: 0,
            server_peak_rss_bytes: None,
            server_cpu_s: None,
            client_cpu_s: None,
        })
    }

    fn kinds(&self, measured: &Measured) -> BTreeMap<String, Kind> {
        measured
            .kinds
            .iter()
            .filter_map(|(at, latencies)| {
                let transaction = self.workload.transactions.get(*at)?;
                let kind = Kind {
                    count: latencies.len(),
                    p50_us: latencies.value_at_quantile(0.50),
                    p95_us: latencies.value_at_quantile(0.95),
                    p99_us: latencies.value_at_quantile(0.99),
                    max_us: latencies.max(),
                };
                Some((transaction.name.clone(), kind))
            })
            .collect()
    }
}

/// Restores the host, and prepends what had happened to it to `problem`.
fn recover(host: &mut dyn Host, engine: Engine, problem: &mut Option<String>) -> Result<()> {
    if let Some(happened) = host.recover(engine)? {
        let before = problem.take().unwrap_or_default();
        *problem = Some(format!("{happened} ({before})"));
    }
    Ok(())
}

/// Returns the whole number that a statement answers with.
fn number(session: &mut dyn Session, engine: Engine, sql: &str) -> Result<i64> {
    struct Only(Option<i64>);
    impl RowSink for Only {
        fn row(&mut self, values: &[Value<'_>]) {
            let first = values.first().map(|value| Datum::of_answer(*value));
            self.0 = first.and_then(|datum| datum.integer());
        }
    }
    let statements = Arc::from([Statement {
        name: String::new(),
        pieces: vec![sql.to_owned()],
    }]);
    session.prepare(engine, Protocol::Text, &statements)?;
    let mut only = Only(None);
    session.execute(0, &[], &mut only)?;
    only.0
        .ok_or_else(|| HarnessError::Server(format!("{sql}: the answer is no whole number")))
}

/// Processor time so far, in seconds.
#[derive(Debug, Clone, Copy)]
struct Usage {
    server: Option<f64>,
    client: Option<f64>,
}

impl Usage {
    fn now(host: &dyn Host, engine: Engine) -> Self {
        Self {
            server: host.cpu_seconds(engine),
            client: Process::current().and_then(|process| process.cpu_seconds()),
        }
    }

    fn since(self, before: Self) -> Self {
        let difference =
            |now: Option<f64>, before: Option<f64>| Some(rounded((now? - before?).max(0.0), 100.0));
        Self {
            server: difference(self.server, before.server),
            client: difference(self.client, before.client),
        }
    }
}

fn rounded(value: f64, parts: f64) -> f64 {
    (value * parts).round() / parts
}

fn described(group: &Group, unit: &str, best: &[(Engine, Option<f64>)]) -> String {
    let baseline = best.first().and_then(|(_, figure)| *figure);
    let engines: Vec<String> = best
        .iter()
        .enumerate()
        .map(|(place, (engine, figure))| {
            let ratio = figure
                .zip(baseline)
                .and_then(|(figure, baseline)| arithmetic::ratio(figure, baseline));
            match (figure, ratio) {
                (None, _) => format!("{} void", engine.title()),
                (Some(figure), Some(ratio)) if place > 0 => {
                    format!("{} {} (×{ratio:.2})", engine.title(), shown(*figure, unit))
                }
                (Some(figure), _) => format!("{} {}", engine.title(), shown(*figure, unit)),
            }
        })
        .collect();
    format!(
        "{:<29}{:>4} threads, {unit}: {}",
        group.query,
        group.threads,
        engines.join(", ")
    )
}

#[cfg(test)]
mod tests;
