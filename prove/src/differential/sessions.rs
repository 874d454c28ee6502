//! The sessions of a script on both engines, and their conflicts.
//!
//! Engines may lock different rows: InnoDB locks gaps, and index entries that it passes. For this reason no session
//! waits. If an engine refuses a statement because of another session, both engines are brought to the same state
//! again:
//!
//! | refused | what follows |
//! |---|---|
//! | by both, after a wait | the statement has changed nothing in either engine, and the transaction goes on |
//! | by both, and the transaction is over in one | the session's transaction is rolled back in both |
//! | by one, and the other has another error | the same |
//! | by one, which has ended the transaction | the same |
//! | by one otherwise | all other transactions are rolled back, and the refusing engine must then do the same |
//!
//! A statement may read one table to change another. Peregrine reads that table by the snapshot, and takes a snapshot
//! if there is none. InnoDB locks the rows that it reads; if an index alone suffices, it reads the newest rows,
//! whatever the snapshot. A new transaction with a snapshot in both engines therefore begins before such a statement.
//!
//! Refused statements are counted separately; a run holds only if they are few (`run.rs`).

use super::looks::{looked_at, Looked};
use super::pair::{is_met, is_over, unlike, Pair, Played, TIMED_OUT};
use super::schema::Table;
use super::side::waits;
use super::{bare, split, SESSION};
use crate::pushdown::answer::Answer;
use peregrine_harness::engines::hosted::Hosted;
use peregrine_harness::error::Result;

/// How long a repeated statement may wait, in seconds, while the server rolls back what a kill left open.
const PATIENCE: u32 = 10;

/// All sessions of a script.
pub struct Sessions {
    pairs: Vec<Pair>,
    /// The pair that reads committed rows, if the script has several sessions.
    outside: Option<Pair>,
}

/// Returns whether a statement reads one table to change another.
fn reads_to_change(sql: &str) -> bool {
    let sql = bare(sql);
    !sql.starts_with("SELECT") && (sql.contains(" SELECT ") || sql.contains(" JOIN "))
}

impl Sessions {
    /// Opens the sessions of a script, with empty databases.
    pub fn new(server: &Hosted, script: &[String]) -> Result<Self> {
        let first = Pair::new(server)?;
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

    /// Opens the same number of sessions after the server was started again.
    pub fn again(self, server: &Hosted) -> Result<Self> {
        let last = self.pairs.len() - 1;
        Self::with_first(Pair::again(server)?, last, self.outside.is_none(), server)
    }

    /// Runs a statement in a session of both engines; neither may refuse it.
    pub fn run_in(&mut self, session: usize, sql: &str) -> Result<()> {
        self.pairs[session].run(sql)
    }

    /// Rolls back all open transactions, if there are several sessions.
    pub fn end(&mut self) -> Result<()> {
        if self.outside.is_some() {
            for pair in &mut self.pairs {
                pair.run("ROLLBACK")?;
            }
        }
        Ok(())
    }

    /// Runs a statement in a session on both engines, and returns the difference.
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
        // This transaction stays open. If an engine let it overwrite a row that another transaction was changing, the
        // rollback of that transaction shows the error.
        let is_again = *refused == Answer::Error(TIMED_OUT) || !side.is_in_transaction()?;
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
        // The repeated statement need not wait for a row, but may find that the row has changed since the snapshot.
        if is_over(answer) {
            pair.run("ROLLBACK")?;
            return Ok(None);
        }
        pair.unlike(sql, &wanted, &got, played)
    }

    /// Compares the tables as a session sees them, and returns the difference.
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

    /// Compares the committed tables, or the tables as a single session sees them, and returns the difference.
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
}
