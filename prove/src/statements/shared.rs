//! The state that the sessions of a life share: what is left to do, what was done, and the faults.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::Mutex;

use mysql::Row;

use peregrine_harness::interrupt;

/// A life ends after this many faults.
const MOST_FAULTS: usize = 5;

/// The state that the sessions of a life share.
#[derive(Debug)]
pub struct Shared {
    over: AtomicBool,
    /// Statements that are left.
    left: AtomicI64,
    /// Statements that ran.
    pub statements: AtomicU64,
    /// Answers that were compared with those of other plans.
    pub judged: AtomicU64,
    /// Answers among these that differed on InnoDB, too.
    pub servers_own: AtomicU64,
    /// Answers that differed, but whose rows were lost before InnoDB could be asked, so that the fault is unknown.
    pub undecided: Mutex<Vec<String>>,
    /// Statements that conflicted with others, or had nothing to work on.
    pub refused: AtomicU64,
    /// The faults.
    pub faults: Mutex<Vec<String>>,
}

impl Shared {
    pub(super) fn new(statements: u64) -> Self {
        Shared {
            over: AtomicBool::new(false),
            left: AtomicI64::new(statements as i64),
            statements: AtomicU64::new(0),
            judged: AtomicU64::new(0),
            servers_own: AtomicU64::new(0),
            undecided: Mutex::default(),
            refused: AtomicU64::new(0),
            faults: Mutex::default(),
        }
    }

    pub fn goes_on(&self) -> bool {
        let over = self.over.load(Ordering::Relaxed) || interrupt::requested();
        !over && self.left.load(Ordering::Relaxed) > 0
    }

    /// Ends the life.
    pub fn end(&self) {
        self.over.store(true, Ordering::Relaxed);
    }

    pub fn count(&self, statements: u64) {
        self.statements.fetch_add(statements, Ordering::Relaxed);
        self.left.fetch_sub(statements as i64, Ordering::Relaxed);
    }

    pub fn judged(&self) {
        self.judged.fetch_add(1, Ordering::Relaxed);
    }

    pub fn servers_own(&self) {
        self.servers_own.fetch_add(1, Ordering::Relaxed);
    }

    pub fn undecided(&self, what: String) {
        if let Ok(mut undecided) = self.undecided.lock() {
            undecided.push(what);
        }
    }

    pub fn refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// Takes the answer of CHECK TABLE.
    pub fn checked(&self, statement: &str, rows: Vec<Row>) {
        for row in rows {
            let told: Option<String> = row.get("Msg_text");
            if told.as_deref() != Some("OK") {
                self.wrong(format!("{statement}: {}", told.unwrap_or_default()));
            }
        }
    }

    pub fn wrong(&self, what: String) {
        if let Ok(mut faults) = self.faults.lock() {
            faults.push(what);
            if faults.len() >= MOST_FAULTS {
                self.end();
            }
        }
    }
}
