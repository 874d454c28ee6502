//! The sessions of a script on both engines, and what happens where they are in each other's way.
//!
//! Engines may lock different rows: InnoDB locks gaps, and entries of indexes that it passes. So no session waits, and where an
//! engine refuses a statement for what another session does, both are brought to the same state again:
//!
//! | refused | what follows |
//! |---|---|
//! | by both, after a wait | the statement has left nothing in either, and the transaction goes on |
//! | by both, and the transaction is over in one | the session's transaction is rolled back in both |
//! | by one, and the other has another error | the same |
//! | by one, which has ended the transaction | the same |
//! | by one otherwise | all other transactions are rolled back, and the statement must do the same there now |
//!
//! A statement that reads one table to change another reads it by the snapshot in Peregrine, and takes one where there is
//! none. InnoDB locks what it reads, and by an index alone it reads the newest rows, whatever the snapshot. So a new
//! transaction begins before such a statement, with a snapshot in both.
//!
//! Statements that are refused are counted apart: a run holds only where there are few (`run.rs`).

use mysql::prelude::Queryable;

use super::looks::{looked_at, Looked};
use super::play::{unlike, waits, Done, Played, Side, EMPTY};
use super::schema::Table;
use super::{bare, split, SESSION};
use crate::engines::hosted::Hosted;
use crate::engines::Engine;
use crate::error::{Result, StatementContext};
use crate::pushdown::answer::Answer;

/// The error of a lock that was not to be had in time.
const TIMED_OUT: u16 = 1205;
/// The errors of what another session does, after which a transaction is over: a deadlock or, in Peregrine, a row changed
/// since the snapshot, which is the second in `InnoDB`.
const OVER: [u16; 2] = [1213, 1020];
/// The error of a table that is newer than the snapshot.
const NEWER_TABLE: u16 = 1412;
/// Seconds that a statement may wait which nobody is in the way of, but what a server that was killed rolls back.
const PATIENCE: u32 = 10;

/// A session on both engines.
pub struct Pair {
    pub innodb: Side,
    pub peregrine: Side,
}

/// All sessions of a script.
pub struct Sessions {
    pairs: Vec<Pair>,
    /// Who looks at what is committed, where there are several.
    outside: Option<Pair>,
}

/// Whether an engine has refused something for what another session does. A table that is newer than the snapshot is none
/// where both say so.
pub fn is_met(answer: &Answer, other: &Answer) -> bool {
    match answer {
        Answer::Error(NEWER_TABLE) => answer != other,
        Answer::Error(TIMED_OUT) => true,
        other => is_over(other),
    }
}

/// Whether an engine has ended a transaction for what another session does.
fn is_over(answer: &Answer) -> bool {
    matches!(answer, Answer::Error(number) if OVER.contains(number))
}

/// Whether a statement locks the rows that it returns. At REPEATABLE READ `InnoDB` returns rows that came after the snapshot,
/// where an index has all that is asked for, and refuses them otherwise.
fn is_locking_read(sql: &str) -> bool {
    let sql = bare(sql);
    sql.starts_with("SELECT")
        && (sql.ends_with(" FOR UPDATE") || sql.ends_with(" LOCK IN SHARE MODE"))
}

/// Whether a statement reads one table to change another.
fn reads_to_change(sql: &str) -> bool {
    let sql = bare(sql);
    !sql.starts_with("SELECT") && (sql.contains(" SELECT ") || sql.contains(" JOIN "))
}

impl Pair {
    /// Begins new transactions, each with a snapshot where it is more than a statement.
    fn begin_with_snapshots(&mut self) -> Result<()> {
        self.run("COMMIT")?;
        let sql = format!("SELECT n FROM {EMPTY}");
        self.innodb.ask(&sql)?;
        self.peregrine.ask(&sql)?;
        Ok(())
    }

    fn run(&mut self, sql: &str) -> Result<()> {
        self.innodb.connection.query_drop(sql).running(sql)?;
        self.peregrine.connection.query_drop(sql).running(sql)
    }

    fn again(server: &Hosted) -> Result<Self> {
        Ok(Pair {
            innodb: Side::again(server, Engine::InnoDb)?,
            peregrine: Side::again(server, Engine::Peregrine)?,
        })
    }

    /// What differs in what came of a statement of a session among several.
    fn unlike(
        &mut self,
        sql: &str,
        wanted: &Done,
        got: &Done,
        played: &mut Played,
    ) -> Result<Option<String>> {
        if is_locking_read(sql) && wanted != got && has_snapshot(&mut self.innodb)? {
            played.met_in_innodb += 1;
            self.run("ROLLBACK")?;
            return Ok(None);
        }
        Ok(unlike(sql, wanted, got, played))
    }

    /// A session among several: it waits for nobody, and rows changed since its snapshot are not to be had in InnoDB
    /// either.
    fn among_others(mut self) -> Result<Self> {
        self.run(&waits(0, 0))?;
        self.run("SET SESSION innodb_snapshot_isolation = ON")?;
        Ok(self)
    }
}

impl Sessions {
    /// The sessions of a script, with nothing in their databases.
    pub fn new(server: &Hosted, script: &[String]) -> Result<Self> {
        let first = Pair {
            innodb: Side::new(server, Engine::InnoDb)?,
            peregrine: Side::new(server, Engine::Peregrine)?,
        };
        let last = script.iter().map(|line| split(line).0).max();
        let is_alone = !script.iter().any(|line| line.starts_with(SESSION));
        Self::with_first(first, last.unwrap_or(0), is_alone, server)
    }

    fn with_first(first: Pair, last: usize, is_alone: bool, server: &Hosted) -> Result<Self> {
        if is_alone {
            return Ok(Sessions {
                pairs: vec![first],
                outside: None,
            });
        }
        let mut pairs = vec![first.among_others()?];
        for _ in 0..last {
            pairs.push(Pair::again(server)?.among_others()?);
        }
        Ok(Sessions {
            pairs,
            outside: Some(Pair::again(server)?.among_others()?),
        })
    }

    /// As many sessions as before, after the server was started again.
    pub fn again(self, server: &Hosted) -> Result<Self> {
        let last = self.pairs.len() - 1;
        Self::with_first(Pair::again(server)?, last, self.outside.is_none(), server)
    }

    /// Runs in a session of both engines what neither may refuse.
    pub fn run_in(&mut self, session: usize, sql: &str) -> Result<()> {
        self.pairs[session].run(sql)
    }

    /// Ends what transactions there are, where there are several sessions.
    pub fn end(&mut self) -> Result<()> {
        if self.outside.is_some() {
            for pair in &mut self.pairs {
                pair.run("ROLLBACK")?;
            }
        }
        Ok(())
    }

    /// What differs in what a statement does.
    pub fn done(
        &mut self,
        session: usize,
        sql: &str,
        played: &mut Played,
    ) -> Result<Option<String>> {
        let pair = &mut self.pairs[session];
        if self.outside.is_some() && reads_to_change(sql) {
            pair.begin_with_snapshots()?;
        }
        let mut wanted = pair.innodb.run(sql)?;
        let mut got = pair.peregrine.run(sql)?;
        if self.outside.is_none() {
            return Ok(unlike(sql, &wanted, &got, played));
        }
        played.of_sessions += 1;
        let in_innodb = is_met(&wanted.answer, &got.answer);
        let in_peregrine = is_met(&got.answer, &wanted.answer);
        let (refused, (side, other)) = match (in_innodb, in_peregrine) {
            (false, false) => return pair.unlike(sql, &wanted, &got, played),
            (true, true) => {
                played.met_in_both += 1;
                if wanted.answer != got.answer || wanted.answer != Answer::Error(TIMED_OUT) {
                    pair.run("ROLLBACK")?;
                }
                return Ok(None);
            }
            (true, false) => {
                played.met_in_innodb += 1;
                (&wanted.answer, (&mut pair.peregrine, &got.answer))
            }
            (false, true) => {
                played.met_in_peregrine += 1;
                (&got.answer, (&mut pair.innodb, &wanted.answer))
            }
        };
        let has_done = !matches!(other, Answer::Error(_));
        // Without a rollback of this transaction: a row that was overwritten while another transaction was changing it
        // shows when that one goes.
        let is_again = *refused == Answer::Error(TIMED_OUT) || !is_in_transaction(side)?;
        if !(has_done && is_again) {
            pair.run("ROLLBACK")?;
            return Ok(None);
        }
        for (at, pair) in self.pairs.iter_mut().enumerate() {
            if at != session {
                pair.run("ROLLBACK")?;
            }
        }
        let pair = &mut self.pairs[session];
        pair.run(&waits(PATIENCE, PATIENCE))?;
        match in_innodb {
            true => wanted = pair.innodb.run(sql)?,
            false => got = pair.peregrine.run(sql)?,
        }
        pair.run(&waits(0, 0))?;
        let answer = if in_innodb {
            &wanted.answer
        } else {
            &got.answer
        };
        // Who no longer waits for a row may find that it has changed since the snapshot.
        if is_over(answer) {
            pair.run("ROLLBACK")?;
            return Ok(None);
        }
        pair.unlike(sql, &wanted, &got, played)
    }

    /// What differs in what a session sees.
    pub fn look(
        &mut self,
        session: usize,
        tables: &[Table],
        played: &mut Played,
    ) -> Result<Option<String>> {
        let pair = &mut self.pairs[session];
        match looked_at(pair, tables, true, played)? {
            Looked::Same => Ok(None),
            Looked::Differs(told) => Ok(Some(told)),
            Looked::Met => {
                played.met_in_both += 1;
                pair.run("ROLLBACK")?;
                Ok(None)
            }
        }
    }

    /// What differs in what is committed; for a session that is alone, in what it sees.
    pub fn look_from_outside(
        &mut self,
        tables: &[Table],
        by_index: bool,
        played: &mut Played,
    ) -> Result<Option<String>> {
        let pair = self.outside.as_mut().unwrap_or(&mut self.pairs[0]);
        match looked_at(pair, tables, by_index, played)? {
            Looked::Same => Ok(None),
            Looked::Differs(told) => Ok(Some(told)),
            Looked::Met => Ok(Some("a table can't be read".to_owned())),
        }
    }
}

fn is_in_transaction(side: &mut Side) -> Result<bool> {
    is_true(side, "@@in_transaction")
}

/// Whether a session is in a transaction at REPEATABLE READ.
fn has_snapshot(side: &mut Side) -> Result<bool> {
    is_true(
        side,
        "@@in_transaction AND @@tx_isolation = 'REPEATABLE-READ'",
    )
}

fn is_true(side: &mut Side, expression: &str) -> Result<bool> {
    let sql = format!("SELECT {expression}");
    let found: Option<u8> = side.connection.query_first(&sql).running(&sql)?;
    Ok(found == Some(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_that_read_are_known() {
        assert!(reads_to_change("INSERT INTO t (id) SELECT u.id FROM u"));
        assert!(reads_to_change(
            "/* binary */ UPDATE t JOIN u ON t.id = u.id SET t.id = 1"
        ));
        assert!(!reads_to_change("SELECT t.id FROM t JOIN u ON t.id = u.id"));
        assert!(!reads_to_change("INSERT INTO t (id) VALUES (1)"));
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
