//! Plays scripts on a server.
//!
//! Every session is a connection with its own thread, so a waiting statement does not stop the other sessions.

use std::collections::VecDeque;
use std::sync::mpsc::{channel, Receiver, Sender};
use std::time::{Duration, Instant};

use mysql::prelude::Queryable;

use super::script::{Answer, Played, Rows, Step, Transcript};
use super::sleeping::Watch;
use peregrine_harness::engines::hosted::{
    Hosted, {self},
};
use peregrine_harness::error::{HarnessError, Result, StatementContext};
use peregrine_harness::server::process::Process;

/// Time without any finished step after which the player gives up the script.
///
/// It is far above every lock wait timeout, so only a server that hangs reaches it.
const PATIENCE: Duration = Duration::from_secs(180);

/// How often the player checks while it waits.
const TICK: Duration = Duration::from_millis(10);

/// Plays scripts in its sessions.
pub struct Player {
    sessions: Vec<Session>,
    /// Reads the server's list of processes, and the table.
    monitor: mysql::Conn,
    answers: Receiver<Answered>,
    /// When the script began.
    begun: Instant,
}

/// A session thread's report of a finished statement.
struct Answered {
    session: usize,
    answer: Answer,
    begun: Instant,
    took: Duration,
}

struct Session {
    connection_id: u32,
    watch: Watch,
    orders: Sender<String>,
    /// The running step, if any.
    running: Option<usize>,
    /// Steps that must wait until the running one has ended.
    queue: VecDeque<usize>,
    failed: bool,
}

impl Player {
    /// Opens `count` sessions in `schema`, and runs `prepare` in each.
    ///
    /// # Errors
    /// When the server refuses.
    pub fn new(server: &Hosted, schema: &str, count: usize, prepare: &[String]) -> Result<Self> {
        let (answered, answers) = channel();
        let mut sessions = Vec::new();
        for number in 0..count {
            let mut connection = server.connect(Some(schema))?;
            hosted::run_all(&mut connection, prepare)?;
            sessions.push(Session::open(
                server.process()?,
                connection,
                number,
                answered.clone(),
            )?);
        }
        let mut monitor = server.connect(Some(schema))?;
        let plain = "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED";
        monitor.query_drop(plain).running(plain)?;
        Ok(Self {
            sessions,
            monitor,
            answers,
            begun: Instant::now(),
        })
    }

    /// Plays the steps and returns the transcript.
    ///
    /// Each session begins its transaction before the first step. The next step begins when a step has ended or waits
    /// for another session. A failed step ends its session's transaction.
    ///
    /// # Errors
    /// When the server is gone or hangs.
    pub fn play(&mut self, steps: &[Step]) -> Result<Transcript> {
        let mut played: Vec<Played> = steps
            .iter()
            .map(|step| Played {
                step: *step,
                answer: Answer::Skipped,
                waited: false,
                begun_ms: 0.0,
                ms: 0.0,
            })
            .collect();
        for session in &mut self.sessions {
            session.failed = false;
            session.queue.clear();
        }
        for used in 1..=self.sessions.len() {
            if steps.iter().any(|step| step.session == used) {
                self.aside(used - 1, "BEGIN")?;
            }
        }
        self.begun = Instant::now();
        for (number, step) in steps.iter().enumerate() {
            let session = self
                .sessions
                .get_mut(step.session.wrapping_sub(1))
                .ok_or_else(|| HarnessError::Usage(format!("no session {}", step.session)))?;
            session.queue.push_back(number);
            self.settle(&mut played, false)?;
        }
        self.settle(&mut played, true)?;
        for number in 0..self.sessions.len() {
            self.aside(number, "ROLLBACK")?;
        }
        let finally = read_table(&mut self.monitor)?;
        Ok(Transcript {
            steps: played,
            finally,
        })
    }

    /// Runs until every session is idle or is proven to wait; with `all`, until every session is idle.
    fn settle(&mut self, played: &mut [Played], all: bool) -> Result<()> {
        let mut last = Instant::now();
        loop {
            self.dispatch(played)?;
            if self.sessions.iter().all(|s| s.running.is_none()) {
                return Ok(());
            }
            match self.answers.recv_timeout(TICK) {
                Ok(answered) => {
                    last = Instant::now();
                    self.take(answered, played);
                    continue;
                }
                Err(std::sync::mpsc::RecvTimeoutError::Timeout) => {}
                Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => {
                    return Err(HarnessError::Server("a session's thread failed".to_owned()))
                }
            }
            if self.all_wait(played)? && !all {
                return Ok(());
            }
            if last.elapsed() > PATIENCE {
                return Err(HarnessError::Server(format!(
                    "no statement came to an end within {} s",
                    PATIENCE.as_secs()
                )));
            }
        }
    }

    /// Sends queued steps to the idle sessions.
    fn dispatch(&mut self, played: &[Played]) -> Result<()> {
        for session in &mut self.sessions {
            while session.running.is_none() {
                let Some(number) = session.queue.pop_front() else {
                    break;
                };
                if session.failed {
                    continue;
                }
                session.send(played[number].step.statement)?;
                session.running = Some(number);
            }
        }
        Ok(())
    }

    fn take(&mut self, answered: Answered, played: &mut [Played]) {
        let session = &mut self.sessions[answered.session];
        session.failed |= matches!(answered.answer, Answer::Failed { .. });
        if let Some(number) = session.running.take() {
            let begun = answered.begun.duration_since(self.begun);
            played[number].answer = answered.answer;
            played[number].begun_ms = begun.as_secs_f64() * 1e3;
            played[number].ms = answered.took.as_secs_f64() * 1e3;
        }
    }

    /// Returns whether every session that runs a statement is proven to wait.
    fn all_wait(&mut self, played: &mut [Played]) -> Result<bool> {
        let mut all = true;
        let mut proven = Vec::new();
        for session in &mut self.sessions {
            if let Some(number) = session.running {
                // A COMMIT may sleep until another thread has written the log. It does not wait for another session's
                // transaction.
                if played[number].step.ends() || !session.watch.asleep() {
                    all = false;
                } else {
                    proven.push((number, session.connection_id));
                }
            }
        }
        if !all {
            return Ok(false);
        }
        for (number, id) in proven {
            let statement = played[number].step.statement;
            if !in_statement(&mut self.monitor, id, statement)? {
                return Ok(false);
            }
            played[number].waited = true;
        }
        Ok(true)
    }

    /// Runs a statement outside the script, while no session runs one.
    fn aside(&mut self, session: usize, statement: &str) -> Result<()> {
        self.sessions[session].send(statement)?;
        match self.answers.recv_timeout(PATIENCE) {
            Ok(Answered {
                answer: Answer::Failed { code, message },
                ..
            }) => Err(HarnessError::Server(format!(
                "{statement}: error {code}: {message}"
            ))),
            Ok(_) => Ok(()),
            Err(_) => Err(HarnessError::Server(format!(
                "{statement} did not come to an end"
            ))),
        }
    }
}

impl Session {
    fn open(
        server: Process,
        mut connection: mysql::Conn,
        number: usize,
        answered: Sender<Answered>,
    ) -> Result<Self> {
        let statement =
            "SELECT id, tid FROM information_schema.processlist WHERE id = connection_id()";
        let ids: Option<(u32, i32)> = connection.query_first(statement).running(statement)?;
        let (connection_id, thread) = ids.ok_or_else(|| {
            HarnessError::Server("a session is not in the list of processes".to_owned())
        })?;
        let (orders, statements) = channel::<String>();
        std::thread::Builder::new()
            .name(format!("session {number}"))
            .spawn(move || {
                for statement in statements {
                    let begun = Instant::now();
                    let answer = execute(&mut connection, &statement);
                    let took = begun.elapsed();
                    if matches!(answer, Answer::Failed { .. }) {
                        // An application rolls back after an error, too; a server that is gone refuses it.
                        let _ = connection.query_drop("ROLLBACK");
                    }
                    let answer = Answered {
                        session: number,
                        answer,
                        begun,
                        took,
                    };
                    if answered.send(answer).is_err() {
                        return;
                    }
                }
            })
            .map_err(|error| HarnessError::Server(format!("no thread for a session: {error}")))?;
        Ok(Self {
            connection_id,
            watch: Watch::new(server, thread),
            orders,
            running: None,
            queue: VecDeque::new(),
            failed: false,
        })
    }

    fn send(&mut self, statement: &str) -> Result<()> {
        self.watch.reset();
        self.orders
            .send(statement.to_owned())
            .map_err(|_| HarnessError::Server("a session has ended".to_owned()))
    }
}

fn execute(connection: &mut mysql::Conn, statement: &str) -> Answer {
    let result = if statement.starts_with("select") {
        connection
            .query::<(i64, i64), _>(statement)
            .map(Answer::Rows)
    } else {
        connection
            .query_drop(statement)
            .map(|()| Answer::Changed(connection.affected_rows()))
    };
    result.unwrap_or_else(|error| match error {
        mysql::Error::MySqlError(error) => Answer::Failed {
            code: error.code,
            message: error.message,
        },
        other => Answer::Failed {
            code: 0,
            message: other.to_string(),
        },
    })
}

/// Returns whether the server is executing the statement for this connection.
fn in_statement(monitor: &mut mysql::Conn, id: u32, statement: &str) -> Result<bool> {
    let query = format!(
        "SELECT command, coalesce(info, '') FROM information_schema.processlist WHERE id = {id}"
    );
    let found: Option<(String, String)> = monitor.query_first(&query).running(&query)?;
    Ok(found.is_some_and(|(command, info)| command == "Query" && info == statement))
}

fn read_table(monitor: &mut mysql::Conn) -> Result<Rows> {
    let query = "SELECT id, value FROM test ORDER BY id";
    monitor.query(query).running(query)
}
