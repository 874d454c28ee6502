//! Runs the rounds: lets a process write, kills it, opens the database and verifies it.

use std::fmt;
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use peregrine::{Cursor, CursorOptions, Database, Isolation, Seek, Value};

use super::rows::{
    Change, Line, Rows, {self},
};
use crate::crash::Limit;
use peregrine_harness::dice::Dice;
use peregrine_harness::error::{HarnessError, PathContext, Result};
use peregrine_harness::errors_told;
use peregrine_harness::interrupt;

/// The time that the process writes before a kill, in milliseconds: from and to.
const LIFETIME_MS: (u32, u32) = (5, 250);
/// The longest wait for the process's first commit.
const FIRST_COMMIT: Duration = Duration::from_secs(60);

/// The number of the signal that ends the process.
const KILLED: i32 = 9;

/// A request for rounds of kills.
#[derive(Debug)]
pub struct Request {
    /// How often the process is killed.
    pub limit: Limit,
    /// Writing threads.
    pub threads: u32,
    /// The seed of transactions and lifetimes.
    pub seed: u64,
    /// The database's directory; it must not exist yet.
    pub dir: PathBuf,
}

impl Request {
    /// Returns the database's directory in the request's directory.
    #[must_use]
    pub fn database(&self) -> PathBuf {
        self.dir.join("db")
    }
}

/// The findings of all rounds.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Outcome {
    /// Writing threads.
    pub threads: u32,
    /// Kills done.
    pub kills: u32,
    /// Kills before the process began a commit: they hit openings, most of which are recoveries.
    pub openings_killed: u32,
    /// Commits acknowledged.
    pub commits: u64,
    /// Commits running at a kill that the next opening found.
    pub kept: u64,
    /// Commits running at a kill that the next opening did not find.
    pub undone: u64,
    /// The longest opening after a kill, in seconds.
    pub longest_open_s: f64,
    /// Broken promises.
    pub faults: Vec<String>,
}

impl Outcome {
    /// Returns whether every promise was kept; a run with fewer commits than kills proves nothing.
    #[must_use]
    pub fn held(&self) -> bool {
        self.faults.is_empty() && self.kills > 0 && self.commits >= u64::from(self.kills)
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: the library, {} kills of a process with {} writing threads ({} while it opened): {} commits \
             acknowledged, {} promises broken; {} commits under way ({} kept, {} undone), longest opening {:.1} s, \
             files checked",
            if self.held() { "held" } else { "NOT HELD" },
            self.kills,
            self.threads,
            self.openings_killed,
            self.commits,
            self.faults.len(),
            self.kept + self.undone,
            self.kept,
            self.undone,
            self.longest_open_s,
        )
    }
}

/// Runs the rounds.
///
/// For each round, `writer` makes the command that runs [`write_until_killed`](super::write_until_killed) in its own
/// process. The run ends early, and keeps the directory, when a promise is broken.
///
/// # Errors
/// When the process can't be started or writes an unknown line; [`HarnessError::Interrupted`].
pub fn run(
    request: &Request,
    writer: impl Fn(u32) -> Command,
    mut told: impl FnMut(&str),
) -> Result<Outcome> {
    if request.dir.exists() {
        return Err(HarnessError::Usage(format!(
            "{} exists already: choose another --dir, or remove it",
            request.dir.display()
        )));
    }
    std::fs::create_dir_all(&request.dir).at("cannot create", &request.dir)?;
    interrupt::flag();
    errors_told::keep();
    let mut rounds = Rounds {
        path: request.database(),
        known: vec![Rows::new(); request.threads as usize],
        outcome: Outcome {
            threads: request.threads,
            ..Outcome::default()
        },
    };
    let mut dice = Dice::new(request.seed, u64::MAX);
    let begun = Instant::now();
    let mut reported = begun;
    for round in 1.. {
        if request.limit.reached(round, begun) || !rounds.outcome.faults.is_empty() {
            break;
        }
        if interrupt::requested() {
            return Err(HarnessError::Interrupted);
        }
        let lifetime = LIFETIME_MS.0 + dice.below(LIFETIME_MS.1 - LIFETIME_MS.0);
        // The lifetime mostly begins at the first commit, because a slow machine might otherwise never reach one.
        // Sometimes it begins at the start, so that kills also hit openings and recoveries.
        let from_first = dice.below(5) != 0;
        let open = rounds.write_and_kill(writer(round), lifetime, from_first)?;
        rounds.outcome.kills = round;
        if let Err(fault) = rounds.verify(&open) {
            rounds.outcome.faults.push(format!("kill {round}: {fault}"));
        }
        if reported.elapsed() >= Duration::from_secs(1) {
            reported = Instant::now();
            let commits = rounds.outcome.commits;
            told(&format!(
                "kill {round}: {commits} commits acknowledged so far"
            ));
        }
    }
    if rounds.outcome.held() {
        std::fs::remove_dir_all(&request.dir).at("cannot remove", &request.dir)?;
    }
    Ok(rounds.outcome)
}

struct Rounds {
    path: PathBuf,
    /// For each thread, the rows that are certainly there.
    known: Vec<Rows>,
    outcome: Outcome,
}

impl Rounds {
    /// Runs the writer, kills it, and applies the acknowledged changes.
    ///
    /// Returns, for each thread, the changes of a commit that began and was not acknowledged.
    fn write_and_kill(
        &mut self,
        mut writer: Command,
        lifetime: u32,
        from_first: bool,
    ) -> Result<Vec<Option<Vec<Change>>>> {
        let failed = |what: &str, error: std::io::Error| {
            HarnessError::Server(format!("the writing process can't be {what}: {error}"))
        };
        let spawned = writer.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
        let mut child = spawned.map_err(|error| failed("started", error))?;
        let out = child.stdout.take().map(BufReader::new);
        let (first_line, began) = std::sync::mpsc::channel();
        let killer = std::thread::spawn(move || {
            if from_first {
                let _ = began.recv_timeout(FIRST_COMMIT);
            }
            std::thread::sleep(Duration::from_millis(u64::from(lifetime)));
            child.kill().and_then(|()| child.wait())
        });
        let mut open: Vec<Option<Vec<Change>>> = vec![None; self.known.len()];
        let mut wrote = false;
        let mut unknown = None;
        for line in out
            .into_iter()
            .flat_map(BufRead::lines)
            .map_while(std::result::Result::ok)
        {
            wrote = true;
            let _ = first_line.send(());
            match Line::parse(&line) {
                Some(Line::Begins(thread, changes)) if thread < open.len() => {
                    open[thread] = Some(changes);
                }
                Some(Line::Acknowledged(thread)) if thread < open.len() => {
                    for change in open[thread].take().unwrap_or_default() {
                        change.apply(&mut self.known[thread]);
                    }
                    self.outcome.commits += 1;
                }
                Some(Line::Wrong(what)) => self.outcome.faults.push(what),
                _ => unknown = Some(line),
            }
        }
        let ended = killer
            .join()
            .map_err(|_| HarnessError::Server("the killer failed".to_owned()))?;
        let status = ended.map_err(|error| failed("killed", error))?;
        if status.signal() != Some(KILLED) {
            let told = format!("the writing process ended by itself: {status}");
            self.outcome.faults.push(told);
        }
        if let Some(line) = unknown {
            return Err(HarnessError::Server(format!(
                "the writing process said {line:?}"
            )));
        }
        self.outcome.openings_killed += u32::from(!wrote);
        Ok(open)
    }

    /// Verifies the database after a kill.
    ///
    /// It must hold all acknowledged changes, and each thread's open commit completely or not at all. The files must be
    /// sound before the opening and after it.
    fn verify(&mut self, open: &[Option<Vec<Change>>]) -> std::result::Result<(), String> {
        if !self.path.join("data").exists() {
            let nothing = self.known.iter().all(Rows::is_empty);
            return if nothing {
                Ok(())
            } else {
                Err("the database is gone".to_owned())
            };
        }
        sound(&self.path).map_err(|wrong| format!("the files as the kill left them: {wrong}"))?;
        let begun = Instant::now();
        let db = Database::open(&self.path, rows::options()).map_err(|error| error.to_string())?;
        let took = begun.elapsed().as_secs_f64();
        self.outcome.longest_open_s = self.outcome.longest_open_s.max(took);
        let found = read(&db, self.known.len()).map_err(|error| error.to_string())??;
        db.close().map_err(|error| error.to_string())?;
        errors_told::none()?;
        for (thread, ((known, open), found)) in
            self.known.iter_mut().zip(open).zip(found).enumerate()
        {
            let mut with = known.clone();
            for change in open.iter().flatten() {
                change.apply(&mut with);
            }
            if open.is_some() && found == with {
                self.outcome.kept += 1;
            } else if found == *known {
                self.outcome.undone += u64::from(open.is_some());
            } else {
                return Err(format!(
                    "thread {thread}: found {found:?}, acknowledged {known:?}, under way {open:?}"
                ));
            }
            *known = found;
        }
        sound(&self.path).map_err(|wrong| format!("the files after recovery: {wrong}"))
    }
}

fn sound(path: &Path) -> std::result::Result<(), String> {
    let mut report = peregrine::check::Report::default();
    peregrine::check::check(path, &mut report).map_err(|error| error.to_string())?;
    match report.problems.first() {
        None => Ok(()),
        Some(problem) => Err(problem.to_string()),
    }
}

/// Returns every thread's rows, if each row matches its token and every index has all rows.
fn read(
    db: &Database,
    threads: usize,
) -> peregrine::Result<std::result::Result<Vec<Rows>, String>> {
    let table = rows::table(db)?;
    let mut found = vec![Rows::new(); threads];
    let mut txn = db.begin(Isolation::RepeatableRead);
    let mut large = Vec::new();
    let mut counts = [0_u64; rows::INDEXES];
    for (index, count) in counts.iter_mut().enumerate() {
        let mut cursor = Cursor::new(&table, index, CursorOptions::default());
        let mut more = cursor.seek(&mut txn, b"", Seek::First)?;
        while more {
            let row = cursor.row()?;
            let (Value::UInt(id), Value::UInt(token)) = (row.get(0)?, row.get(1)?) else {
                return Ok(Err("a row without its numbers".to_owned()));
            };
            let whole = row.get_large(3, &mut large)? && large == rows::text(token);
            if !whole || row.get(2)? != Value::UInt(rows::group(token)) {
                return Ok(Err(format!("row {id} is not as its token says")));
            }
            if let Some(rows) = found.get_mut(id as usize % threads) {
                rows.insert(id, token);
            }
            *count += 1;
            more = cursor.next(&mut txn)?;
        }
    }
    let rows = found.iter().map(Rows::len).sum::<usize>() as u64;
    if counts.iter().any(|count| *count != rows) {
        return Ok(Err(format!(
            "{rows} rows, and indexes with {counts:?} entries"
        )));
    }
    Ok(Ok(found))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broken_promise_or_no_work_is_not_held() {
        let outcome = Outcome {
            kills: 20,
            commits: 500,
            ..Outcome::default()
        };
        assert!(outcome.held());
        assert!(outcome
            .to_string()
            .starts_with("held: the library, 20 kills"));
        let idle = Outcome {
            commits: 3,
            ..outcome.clone()
        };
        assert!(idle.to_string().starts_with("NOT HELD"));
        let faulty = Outcome {
            faults: vec!["kill 3: thread 1".to_owned()],
            ..outcome
        };
        assert!(!faulty.held());
    }
}
