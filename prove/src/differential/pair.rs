//! A session on both engines: the comparison of what they do, and their refusals because of other sessions.

use mysql::prelude::Queryable;

use super::side::{waits, Done, Side, EMPTY};
use super::{bare, BINARY};
use crate::pushdown::answer::{difference, Answer};
use peregrine_harness::engines::hosted::Hosted;
use peregrine_harness::engines::Engine;
use peregrine_harness::error::{Result, StatementContext};

/// The error of a lock wait timeout.
pub const TIMED_OUT: u16 = 1205;
/// The errors after which a transaction is over because of another session.
///
/// 1213 is a deadlock and, in Peregrine, also a row changed since the snapshot. `InnoDB` reports such a row as 1020.
const OVER: [u16; 2] = [1213, 1020];
/// The error of a table that is newer than the snapshot.
const NEWER_TABLE: u16 = 1412;

/// Counters of the work done.
#[derive(Debug, Clone, Copy, Default)]
pub struct Played {
    /// Statements run on both engines.
    pub statements: u64,
    /// Statements that both engines refused.
    pub refused: u64,
    /// Rows that the statements changed.
    pub changed: u64,
    /// Rows that were compared.
    pub rows: u64,
    /// Indexes through which a table was read.
    pub by_index: u64,
    /// Statements that used the binary protocol.
    pub binary: u64,
    /// How often the server was killed or stopped.
    pub restarts: u64,
    /// Statements for which InnoDB's count contradicts the manual and Peregrine's follows it.
    pub by_manual: u64,
    /// Statements in scripts with several sessions.
    pub of_sessions: u64,
    /// Of these, statements that both engines refused because of another session.
    pub met_in_both: u64,
    /// Those that only InnoDB refused because of another session.
    pub met_in_innodb: u64,
    /// Those that only Peregrine refused because of another session.
    pub met_in_peregrine: u64,
}

/// A session on both engines.
pub struct Pair {
    pub innodb: Side,
    pub peregrine: Side,
}

/// Returns whether an engine refused a statement because of another session.
///
/// If both engines say that a table is newer than the snapshot, this is no such refusal.
pub fn is_met(answer: &Answer, other: &Answer) -> bool {
    match answer {
        Answer::Error(NEWER_TABLE) => answer != other,
        Answer::Error(TIMED_OUT) => true,
        other => is_over(other),
    }
}

/// Returns whether an engine ended a transaction because of another session.
pub fn is_over(answer: &Answer) -> bool {
    matches!(answer, Answer::Error(number) if OVER.contains(number))
}

/// Returns whether a statement locks the rows that it returns.
///
/// At REPEATABLE READ, `InnoDB` returns rows newer than the snapshot if an index covers the query; otherwise it refuses
/// the statement.
fn is_locking_read(sql: &str) -> bool {
    let sql = bare(sql);
    sql.starts_with("SELECT")
        && (sql.ends_with(" FOR UPDATE") || sql.ends_with(" LOCK IN SHARE MODE"))
}

/// Returns whether the counts of changed rows differ in a way in which InnoDB contradicts the manual.
///
/// ON DUPLICATE KEY UPDATE counts 0 for a row that is set to its own values; InnoDB counts 1 if it has not read the
/// whole row. REPLACE counts deleted and inserted rows; InnoDB counts 1 for a row that it finds the same.
fn is_by_manual(sql: &str, innodb: &Done, peregrine: &Done) -> bool {
    let (ours, theirs) = (peregrine.changed, innodb.changed);
    let is_counted_so = (sql.contains("ON DUPLICATE KEY UPDATE") && ours < theirs)
        || (bare(sql).starts_with("REPLACE") && ours > theirs);
    let same = (&innodb.answer, &innodb.warnings) == (&peregrine.answer, &peregrine.warnings);
    is_counted_so && same
}

/// Counts a statement, and returns the difference between its outcomes.
pub fn unlike(sql: &str, wanted: &Done, got: &Done, played: &mut Played) -> Option<String> {
    played.statements += 1;
    played.binary += u64::from(sql.starts_with(BINARY));
    played.changed += wanted.changed;
    match &wanted.answer {
        Answer::Error(_) => played.refused += 1,
        Answer::Rows(rows, _) => played.rows += rows.len() as u64,
    }
    if is_by_manual(sql, wanted, got) {
        played.by_manual += 1;
        return None;
    }
    (wanted != got).then(|| {
        let told = format!("InnoDB: {wanted}; Peregrine: {got}");
        match (&wanted.answer, &got.answer) {
            (Answer::Rows(..), Answer::Rows(..)) if wanted.answer != got.answer => {
                format!("{told}; {}", difference(&wanted.answer, &got.answer))
            }
            _ => told,
        }
    })
}

impl Pair {
    /// Opens a session on both engines, with empty databases.
    pub fn new(server: &Hosted) -> Result<Self> {
        Ok(Pair {
            innodb: Side::new(server, Engine::InnoDb)?,
            peregrine: Side::new(server, Engine::Peregrine)?,
        })
    }

    /// Opens another session, and keeps the contents of the databases.
    pub fn again(server: &Hosted) -> Result<Self> {
        Ok(Pair {
            innodb: Side::again(server, Engine::InnoDb)?,
            peregrine: Side::again(server, Engine::Peregrine)?,
        })
    }

    /// Commits, and takes a snapshot in both engines; with autocommit, the snapshot lasts for one statement only.
    pub fn begin_with_snapshots(&mut self) -> Result<()> {
        self.run("COMMIT")?;
        let sql = format!("SELECT n FROM {EMPTY}");
        self.innodb.ask(&sql)?;
        self.peregrine.ask(&sql)?;
        Ok(())
    }

    pub fn run(&mut self, sql: &str) -> Result<()> {
        self.innodb.connection.query_drop(sql).running(sql)?;
        self.peregrine.connection.query_drop(sql).running(sql)
    }

    /// Compares the outcomes of a statement in a script with several sessions, and returns the difference.
    pub fn unlike(
        &mut self,
        sql: &str,
        wanted: &Done,
        got: &Done,
        played: &mut Played,
    ) -> Result<Option<String>> {
        if is_locking_read(sql) && wanted != got && self.innodb.has_snapshot()? {
            played.met_in_innodb += 1;
            self.run("ROLLBACK")?;
            return Ok(None);
        }
        Ok(unlike(sql, wanted, got, played))
    }

    /// Configures a session of a script with several sessions.
    ///
    /// It does not wait for locks, and InnoDB refuses rows changed since the snapshot, as Peregrine does.
    pub fn among_others(mut self) -> Result<Self> {
        self.run(&waits(0, 0))?;
        self.run("SET SESSION innodb_snapshot_isolation = ON")?;
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manual_decides_where_it_says_something() {
        let done = |changed, rows: &[&str]| Done {
            changed,
            answer: Answer::Rows(
                rows.iter().map(|row| (*row).to_owned()).collect(),
                Vec::new(),
            ),
            warnings: Vec::new(),
        };
        let upsert = "INSERT INTO t VALUES (1) ON DUPLICATE KEY UPDATE a = 1";
        assert!(is_by_manual(upsert, &done(5, &[]), &done(4, &[])));
        assert!(!is_by_manual(upsert, &done(4, &[]), &done(5, &[])));
        assert!(!is_by_manual(upsert, &done(5, &["1"]), &done(4, &["2"])));
        let insert = "INSERT INTO t VALUES (1)";
        assert!(!is_by_manual(insert, &done(5, &[]), &done(4, &[])));
        let replace = "REPLACE INTO t VALUES (1)";
        assert!(is_by_manual(replace, &done(1, &[]), &done(2, &[])));
        assert!(!is_by_manual(replace, &done(2, &[]), &done(1, &[])));
    }

    #[test]
    fn what_another_session_does_is_no_difference() {
        let rows = Answer::Rows(Vec::new(), Vec::new());
        for number in [1205, 1213, 1020] {
            assert!(is_met(&Answer::Error(number), &rows));
            assert!(is_met(&Answer::Error(number), &Answer::Error(number)));
            assert!(!is_met(&rows, &Answer::Error(number)));
        }
        assert!(!is_met(&Answer::Error(1062), &rows));
        assert!(is_met(&Answer::Error(1412), &rows));
        assert!(!is_met(&Answer::Error(1412), &Answer::Error(1412)));
    }
}
