//! Checks whether the tables hold what they must.

use std::collections::BTreeMap;

use mysql::prelude::Queryable;

use super::history::{Content, State, COMMITS, ROWS};
use super::writer::Ending;
use peregrine_harness::error::{Result, StatementContext};

/// The fate of a commit that was running at the kill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InFlight {
    /// No commit was running.
    None,
    /// The commit is there, completely.
    Kept,
    /// Nothing of the commit is there.
    Undone,
}

/// A broken promise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// An acknowledged commit is missing.
    Lost(String),
    /// The tables have a state that no sequence of whole transactions explains.
    Torn(String),
    /// The server finds its tables damaged, or an index disagrees with its table.
    Damaged(String),
    /// The server has refused or reported something, or has ended, without any cause in the test.
    Unprovoked(String),
}

impl Fault {
    /// Returns the description of the fault.
    #[must_use]
    pub fn text(&self) -> &str {
        match self {
            Self::Lost(text) | Self::Torn(text) | Self::Damaged(text) | Self::Unprovoked(text) => {
                text
            }
        }
    }
}

/// Compares a writer's rows in the tables with the writer's knowledge.
///
/// # Errors
/// The broken promise.
pub fn judge(writer: u32, ending: &Ending, found: &State) -> std::result::Result<InFlight, Fault> {
    if let Some(transaction) = &ending.in_flight {
        if *found == transaction.after {
            return Ok(InFlight::Kept);
        }
    }
    if *found == ending.acknowledged {
        return Ok(if ending.in_flight.is_some() {
            InFlight::Undone
        } else {
            InFlight::None
        });
    }
    let missing: Vec<u64> = ending
        .acknowledged
        .commits
        .difference(&found.commits)
        .copied()
        .collect();
    if let Some(first) = missing.first() {
        return Err(Fault::Lost(format!(
            "writer {writer}: {} acknowledged commits are missing, the first is number {first}",
            missing.len()
        )));
    }
    let expected = match &ending.in_flight {
        Some(transaction) if found.commits.contains(&transaction.number) => &transaction.after,
        _ => &ending.acknowledged,
    };
    let difference = first_difference(expected, found);
    Err(Fault::Torn(format!("writer {writer}: {difference}")))
}

fn first_difference(expected: &State, found: &State) -> String {
    if let Some(number) = found.commits.difference(&expected.commits).next() {
        return format!("transaction {number} is there, which was never committed");
    }
    for (id, content) in &expected.rows {
        match found.rows.get(id) {
            None => return format!("row {id} of transaction {} is missing", content.version),
            Some(other) if other != content => {
                return format!(
                    "row {id} is as transaction {} left it, not as {} did",
                    other.version, content.version
                )
            }
            Some(_) => {}
        }
    }
    let more = found.rows.keys().find(|id| !expected.rows.contains_key(id));
    more.map_or_else(
        || "a difference".to_owned(),
        |id| format!("row {id} is there, which must not be"),
    )
}

/// Reads every writer's state from whole tables, without the secondary index.
///
/// # Errors
/// When a statement fails.
pub fn read(connection: &mut mysql::Conn, writers: u32) -> Result<Vec<State>> {
    let mut states = vec![State::default(); writers as usize];
    let statement = format!("SELECT id, writer, version, note FROM {ROWS}");
    let rows: Vec<(u32, usize, u64, String)> = connection.query(&statement).running(&statement)?;
    for (id, writer, version, note) in rows {
        if let Some(state) = states.get_mut(writer) {
            state.rows.insert(id, Content { version, note });
        }
    }
    let statement = format!("SELECT writer, number FROM {COMMITS}");
    let commits: Vec<(usize, u64)> = connection.query(&statement).running(&statement)?;
    for (writer, number) in commits {
        if let Some(state) = states.get_mut(writer) {
            state.commits.insert(number);
        }
    }
    Ok(states)
}

/// Returns a fault if the secondary index disagrees with the rows, or if the server finds its tables damaged.
///
/// # Errors
/// When a statement fails.
pub fn sound(connection: &mut mysql::Conn, states: &[State]) -> Result<Option<Fault>> {
    let statement =
        format!("SELECT writer, version, id FROM {ROWS} FORCE INDEX (by_writer) WHERE writer >= 0");
    let entries: Vec<(usize, u64, u32)> = connection.query(&statement).running(&statement)?;
    let count: usize = states.iter().map(|state| state.rows.len()).sum();
    let by_index: BTreeMap<u32, (usize, u64)> = entries
        .iter()
        .map(|(writer, version, id)| (*id, (*writer, *version)))
        .collect();
    let by_rows: BTreeMap<u32, (usize, u64)> = states
        .iter()
        .enumerate()
        .flat_map(|(writer, state)| {
            state
                .rows
                .iter()
                .map(move |(id, content)| (*id, (writer, content.version)))
        })
        .collect();
    if entries.len() != count || by_index != by_rows {
        return Ok(Some(Fault::Damaged(format!(
            "the secondary index has {} entries for {count} rows, or other ones",
            entries.len()
        ))));
    }
    let statement = format!("CHECK TABLE {ROWS}, {COMMITS}");
    let said: Vec<(String, String, String, String)> =
        connection.query(&statement).running(&statement)?;
    Ok(said
        .into_iter()
        .find(|(_, _, kind, text)| {
            // An engine without a check reports this as a note, which is no fault.
            kind.eq_ignore_ascii_case("error") || (kind == "status" && text != "OK")
        })
        .map(|(table, _, _, text)| Fault::Damaged(format!("{table}: {text}"))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crash::history::Author;

    /// Returns the ending of a writer with thirty committed transactions and one in flight.
    fn ending() -> Ending {
        let mut author = Author::new(5, 0, 2, 4, 0);
        let mut ending = Ending::default();
        loop {
            let transaction = author.next(&ending.acknowledged);
            let changes = transaction.after.rows != ending.acknowledged.rows;
            if ending.acknowledged.commits.len() >= 30 && changes && transaction.commits {
                ending.in_flight = Some(transaction);
                return ending;
            }
            if transaction.commits {
                ending.acknowledged = transaction.after;
            }
        }
    }

    #[test]
    fn all_or_nothing_of_the_commit_under_way_is_right() {
        let ending = ending();
        let after = &ending.in_flight.as_ref().expect("one").after;
        assert_eq!(
            judge(2, &ending, &ending.acknowledged),
            Ok(InFlight::Undone)
        );
        assert_eq!(judge(2, &ending, after), Ok(InFlight::Kept));
        let quiet = Ending {
            in_flight: None,
            ..ending.clone()
        };
        assert_eq!(judge(2, &quiet, &quiet.acknowledged), Ok(InFlight::None));
        assert!(judge(2, &quiet, after).is_err(), "what never was committed");
    }

    #[test]
    fn a_lost_commit_is_told_from_half_a_transaction() {
        let ending = ending();
        let mut lost = ending.acknowledged.clone();
        let last = *lost.commits.last().expect("one");
        lost.commits.remove(&last);
        assert!(
            matches!(judge(2, &ending, &lost), Err(Fault::Lost(text)) if text.contains(&last.to_string()))
        );

        // Each row of the running commit counts: the check notices every single missing or remaining one.
        let after = &ending.in_flight.as_ref().expect("one").after;
        let ids: Vec<u32> = after
            .rows
            .keys()
            .chain(ending.acknowledged.rows.keys())
            .copied()
            .collect();
        let mut noticed = 0;
        for id in ids {
            let (old, new) = (ending.acknowledged.rows.get(&id), after.rows.get(&id));
            if old == new {
                continue;
            }
            let mut half = after.clone();
            match old {
                Some(content) => half.rows.insert(id, content.clone()),
                None => half.rows.remove(&id),
            };
            assert!(matches!(judge(2, &ending, &half), Err(Fault::Torn(_))));
            noticed += 1;
        }
        assert!(noticed > 0);
    }
}
