//! A scan by one thread and by several, through the library.
//!
//! It has a condition and three aggregates. Every leaf has rows for which the condition holds and others, so that no
//! zone map answers it.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use peregrine::{
    Aggregate, Aggregated, Column, ColumnType, Comparison, Condition, Database, Durability,
    IndexRange, Isolation, Key, Options, OwnedValue, Table, TableSchema, Value,
};

use crate::normal::generator::{Row, BIRTH_DAYS};
use crate::normal::Generator;
use peregrine_harness::arithmetic;
use peregrine_harness::error::{HarnessError, Result};
use peregrine_harness::interrupt;

/// The number of rows in a transaction that fills the table.
const AT_ONCE: u32 = 10_000;
/// The columns of the condition and the aggregates.
const DOB: usize = 1;
const STATE: usize = 2;
/// Days of birth are uniform; half of all rows are below this one.
const MIDDLE: u16 = BIRTH_DAYS / 2;

/// The size and number of the scans.
#[derive(Debug, Clone, Copy)]
pub struct Request {
    /// The number of rows of the table.
    pub rows: u32,
    /// The number of threads that is compared with one.
    pub threads: usize,
    /// The number of measurements of each, in turns.
    pub rounds: u32,
    /// The size of the pool, which holds everything.
    pub cache_bytes: u64,
    /// The minimum ratio of the speeds.
    pub minimum: f64,
}

/// The outcome of the scans.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    rows: u32,
    threads: usize,
    wanted: f64,
    /// Seconds of each scan by one thread.
    pub one: Vec<f64>,
    /// Seconds of each scan by several threads.
    pub several: Vec<f64>,
    /// Seconds of as many scans at once as there are threads, each by one thread: the machine's limit.
    pub at_once: Vec<f64>,
    /// Scans with a wrong answer.
    pub wrong: u32,
}

impl Outcome {
    /// Returns how many times faster several threads are.
    ///
    /// The best scan of each counts, because other work of the machine makes scans slower and never faster.
    #[must_use]
    pub fn ratio(&self) -> Option<f64> {
        arithmetic::ratio(best(&self.one)?, best(&self.several)?)
    }

    /// Returns how many times the work of one scan the machine does with as many scans at once as there are threads.
    ///
    /// These scans share nothing but the pages.
    #[must_use]
    pub fn ceiling(&self) -> Option<f64> {
        let alone = best(&self.one)? * self.threads as f64;
        arithmetic::ratio(alone, best(&self.at_once)?)
    }

    /// Returns whether the ratio is high enough and every answer was right.
    #[must_use]
    pub fn held(&self) -> bool {
        self.wrong == 0 && self.ratio().is_some_and(|ratio| ratio >= self.wanted)
    }
}

fn best(times: &[f64]) -> Option<f64> {
    arithmetic::minimum(times.iter().copied())
}

impl fmt::Display for Outcome {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let milliseconds = |times: &[f64]| {
            let mut sorted: Vec<f64> = times.iter().map(|time| time * 1e3).collect();
            sorted.sort_by(f64::total_cmp);
            let at = |place: usize| sorted.get(place).copied().unwrap_or(0.0);
            format!(
                "minimum {:.1}, median {:.1} ms",
                at(0),
                at(sorted.len().saturating_sub(1) / 2)
            )
        };
        write!(
            out,
            "{}: a condition and three aggregates over {} rows: {} threads {:.2} times as fast as one ({} required); one \
             thread {}, {} threads {}; as many scans at once, each by one thread, {:.2} times the work of one, {}; {} rounds, \
             {} wrong answers",
            if self.held() { "held" } else { "NOT HELD" },
            self.rows,
            self.threads,
            self.ratio().unwrap_or(0.0),
            self.wanted,
            milliseconds(&self.one),
            self.threads,
            milliseconds(&self.several),
            self.ceiling().unwrap_or(0.0),
            milliseconds(&self.at_once),
            self.one.len(),
            self.wrong
        )
    }
}

/// Fills a table in `dir` and scans it.
///
/// # Errors
/// When the database fails; [`HarnessError::Interrupted`] when the user stops it.
pub fn run(request: &Request, dir: &Path) -> Result<Outcome> {
    let options = Options {
        pool_bytes: usize::try_from(request.cache_bytes).unwrap_or(usize::MAX),
        durability: Durability::WriteAtCommit,
        ..Options::default()
    };
    let db = Database::open(dir, options).map_err(failed)?;
    let generator = Generator::new(1, request.rows);
    let (table, right) = fill(&db, &generator)?;
    let mut outcome = Outcome {
        rows: request.rows,
        threads: request.threads,
        wanted: request.minimum,
        one: Vec::new(),
        several: Vec::new(),
        at_once: Vec::new(),
        wrong: 0,
    };
    // The first scan of each does not count, because it computes the zone maps.
    for round in 0..=request.rounds {
        if interrupt::requested() {
            return Err(HarnessError::Interrupted);
        }
        let mut turns = [1, request.threads];
        if round % 2 == 1 {
            turns.reverse();
        }
        for threads in turns {
            db.set_scan_threads(threads).map_err(failed)?;
            let (took, answer) = scan(&db, &table)?;
            outcome.wrong += u32::from(answer != right);
            if round > 0 {
                let times = if threads == 1 {
                    &mut outcome.one
                } else {
                    &mut outcome.several
                };
                times.push(took.as_secs_f64());
            }
        }
        db.set_scan_threads(1).map_err(failed)?;
        let (took, wrong) = scans_at_once(&db, &table, request.threads, &right)?;
        outcome.wrong += wrong;
        if round > 0 {
            outcome.at_once.push(took.as_secs_f64());
        }
    }
    drop(table);
    db.close().map_err(failed)?;
    Ok(outcome)
}

fn failed(error: peregrine::Error) -> HarnessError {
    HarnessError::Server(error.to_string())
}

/// Fills the table, and returns it with the right answer.
fn fill(db: &Database, generator: &Generator) -> Result<(Arc<Table>, Vec<Aggregated>)> {
    let number = |name: &str, bytes| {
        let signed = false;
        Column::new(name, ColumnType::Int { bytes, signed })
    };
    let schema = TableSchema {
        columns: vec![
            number("id", 4),
            number("dob", 2).nullable(),
            number("state_id", 1),
            Column::new("name", ColumnType::VarBytes { max: 64 }),
            Column::new("email", ColumnType::VarBytes { max: 64 }),
            Column::new("address", ColumnType::VarBytes { max: 128 }),
        ],
        primary: Some(Key::new(&[0])),
        indexes: vec![],
        user: vec![],
    };
    let table = db.create_table("normal", &schema).map_err(failed)?;
    let mut row = Row::default();
    let (mut rows, mut states, mut first) = (0, 0, None);
    for from in (1..=generator.rows()).step_by(AT_ONCE as usize) {
        let mut transaction = db.begin(Isolation::ReadCommitted);
        for id in from..=generator.rows().min(from + AT_ONCE - 1) {
            generator.row(id, &mut row);
            if let Some(day) = row.birth_day.filter(|day| *day < MIDDLE) {
                rows += 1;
                states += i128::from(row.state_id);
                first = Some(first.unwrap_or(day).min(day));
            }
            let values = [
                Value::UInt(id.into()),
                row.birth_day
                    .map_or(Value::Null, |day| Value::UInt(day.into())),
                Value::UInt(row.state_id.into()),
                Value::Bytes(row.name.as_bytes()),
                Value::Bytes(row.email.as_bytes()),
                Value::Bytes(row.address.as_bytes()),
            ];
            transaction.insert(&table, &values).map_err(failed)?;
        }
        transaction.commit().map_err(failed)?;
    }
    db.purge().map_err(failed)?;
    db.checkpoint().map_err(failed)?;
    let right = vec![
        Aggregated::Count(rows),
        Aggregated::Sum {
            sum: states,
            values: rows,
        },
        Aggregated::Value(first.map(|day| OwnedValue::UInt(day.into()))),
    ];
    Ok((table, right))
}

fn scan(db: &Database, table: &Arc<Table>) -> Result<(Duration, Vec<Aggregated>)> {
    let asked = [Aggregate::Rows, Aggregate::Sum(STATE), Aggregate::Min(DOB)];
    let below = [Condition::Compare(
        DOB,
        Comparison::Less,
        Value::UInt(MIDDLE.into()),
    )];
    let mut transaction = db.begin(Isolation::ReadCommitted);
    let begun = Instant::now();
    let answer = transaction
        .aggregate(table, &IndexRange::whole(0), &below, &asked)
        .map_err(failed)?;
    let took = begun.elapsed();
    transaction.commit().map_err(failed)?;
    Ok((took, answer))
}

/// Runs this many scans at once, and returns the time until all end and the number of wrong answers.
fn scans_at_once(
    db: &Database,
    table: &Arc<Table>,
    count: usize,
    right: &[Aggregated],
) -> Result<(Duration, u32)> {
    let begun = Instant::now();
    let answers = std::thread::scope(|scope| {
        let scans: Vec<_> = (0..count)
            .map(|_| scope.spawn(|| scan(db, table)))
            .collect();
        let joined = scans.into_iter().map(|scan| {
            let panicked = || Err(HarnessError::Server("a scan panicked".to_owned()));
            scan.join().unwrap_or_else(|_| panicked())
        });
        joined.collect::<Result<Vec<_>>>()
    })?;
    let wrong = answers.iter().filter(|(_, answer)| answer != right).count();
    Ok((begun.elapsed(), u32::try_from(wrong).unwrap_or(u32::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scans_are_measured_in_turns_and_their_answers_are_right() {
        let dir = tempfile::tempdir().expect("a directory");
        let request = Request {
            rows: 30_000,
            threads: 2,
            rounds: 3,
            cache_bytes: 64 << 20,
            minimum: 0.0,
        };
        let outcome = run(&request, &dir.path().join("db")).expect("run");
        assert_eq!((outcome.one.len(), outcome.several.len()), (3, 3));
        assert_eq!(outcome.at_once.len(), 3);
        assert_eq!(outcome.wrong, 0);
        assert!(outcome.held(), "{outcome}");
    }

    #[test]
    fn the_best_scans_count_and_wrong_answers_void_them() {
        let outcome = Outcome {
            rows: 1_000,
            threads: 2,
            wanted: 1.8,
            one: vec![0.030, 0.027, 0.090],
            several: vec![0.040, 0.015, 0.016],
            at_once: vec![0.030, 0.036],
            wrong: 0,
        };
        assert!((outcome.ratio().expect("a ratio") - 1.8).abs() < 1e-9);
        assert!((outcome.ceiling().expect("a ceiling") - 1.8).abs() < 1e-9);
        let told = Outcome {
            wanted: 1.7,
            ..outcome.clone()
        }
        .to_string();
        assert!(told.starts_with("held: "), "{told}");
        assert!(
            told.contains("one thread minimum 27.0, median 30.0 ms"),
            "{told}"
        );
        let slow = Outcome {
            wanted: 1.9,
            ..outcome.clone()
        };
        assert!(slow.to_string().starts_with("NOT HELD: "));
        let wrong = Outcome {
            wrong: 1,
            wanted: 1.7,
            ..outcome
        };
        assert!(!wrong.held());
    }
}
