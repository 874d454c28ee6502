//! The published anomaly scripts as data, each with a rule that detects the anomaly in a transcript.
//!
//! Table `test` begins with `(1, 10)` and `(2, 20)`. Each script's rule decides from the answers alone whether the
//! anomaly *happened*. Waits, errors and snapshots are means that prevent it.

use super::script::{step, Step, Transcript};
use peregrine_harness::level::Level;

/// One anomaly.
#[derive(Debug, Clone, Copy)]
pub struct Anomaly {
    /// Its short name, as in the literature.
    pub name: &'static str,
    /// Its name in words.
    pub title: &'static str,
    /// The number of sessions in the script.
    pub sessions: usize,
    /// The steps.
    pub steps: &'static [Step],
    /// Returns whether the anomaly happened.
    pub happened: fn(&Transcript) -> bool,
    /// The weakest level at which Peregrine promises to prevent the anomaly.
    pub prevented_from: Level,
}

/// Every script.
pub const ALL: [Anomaly; 15] = [
    Anomaly {
        name: "G0",
        title: "dirty write",
        sessions: 2,
        steps: &[
            step(1, "update test set value = 11 where id = 1"),
            step(2, "update test set value = 12 where id = 1"),
            step(2, "update test set value = 22 where id = 2"),
            step(1, "update test set value = 21 where id = 2"),
            step(1, "commit"),
            step(2, "commit"),
        ],
        happened: |t| matches!(t.finally[..], [(1, 11), (2, 22)] | [(1, 12), (2, 21)]),
        prevented_from: Level::ReadUncommitted,
    },
    Anomaly {
        name: "G1a",
        title: "aborted read",
        sessions: 2,
        steps: &[
            step(1, "update test set value = 101 where id = 1"),
            step(2, "select * from test"),
            step(1, "rollback"),
            step(2, "select * from test"),
            step(2, "commit"),
        ],
        happened: |t| saw(t, 2, 101),
        prevented_from: Level::ReadUncommitted,
    },
    Anomaly {
        name: "G1b",
        title: "intermediate read",
        sessions: 2,
        steps: &[
            step(1, "update test set value = 101 where id = 1"),
            step(2, "select * from test"),
            step(1, "update test set value = 11 where id = 1"),
            step(1, "commit"),
            step(2, "select * from test"),
            step(2, "commit"),
        ],
        happened: |t| saw(t, 2, 101),
        prevented_from: Level::ReadUncommitted,
    },
    Anomaly {
        name: "G1c",
        title: "circular information flow",
        sessions: 2,
        steps: &[
            step(1, "update test set value = 11 where id = 1"),
            step(2, "update test set value = 22 where id = 2"),
            step(1, "select * from test where id = 2"),
            step(2, "select * from test where id = 1"),
            step(1, "commit"),
            step(2, "commit"),
        ],
        happened: |t| saw(t, 1, 22) && saw(t, 2, 11),
        prevented_from: Level::ReadUncommitted,
    },
    Anomaly {
        name: "OTV",
        title: "observed transaction vanishes",
        sessions: 3,
        steps: &[
            step(1, "update test set value = 11 where id = 1"),
            step(1, "update test set value = 19 where id = 2"),
            step(2, "update test set value = 12 where id = 1"),
            step(1, "commit"),
            step(3, "select * from test where id = 1"),
            step(3, "select * from test where id = 2"),
            step(2, "update test set value = 18 where id = 2"),
            step(3, "select * from test where id = 2"),
            step(3, "select * from test where id = 1"),
            step(2, "commit"),
            step(3, "select * from test where id = 2"),
            step(3, "select * from test where id = 1"),
            step(3, "commit"),
        ],
        happened: |t| {
            let mut second_seen = false;
            t.reads(3).into_iter().flatten().any(|(_, value)| {
                second_seen |= matches!(value, 12 | 18);
                second_seen && matches!(value, 11 | 19)
            })
        },
        prevented_from: Level::ReadUncommitted,
    },
    Anomaly {
        name: "PMP",
        title: "predicate-many-preceders, reads",
        sessions: 2,
        steps: &[
            step(1, "select * from test where value = 30"),
            step(2, "insert into test values (3, 30)"),
            step(2, "commit"),
            step(1, "select * from test where value % 3 = 0"),
            step(1, "commit"),
        ],
        happened: |t| t.read(1, 1).is_some_and(Vec::is_empty) && saw(t, 1, 30),
        prevented_from: Level::RepeatableRead,
    },
    Anomaly {
        name: "PMP-write",
        title: "predicate-many-preceders, writes",
        sessions: 2,
        steps: &[
            step(1, "update test set value = value + 10"),
            step(2, "select * from test where value = 20"),
            step(2, "delete from test where value = 20"),
            step(1, "commit"),
            step(2, "select * from test where value = 20"),
            step(2, "commit"),
        ],
        // T2 saw other rows than it deleted.
        happened: |t| {
            t.committed(1)
                && t.committed(2)
                && t.read(2, 1).is_some_and(|rows| rows[..] == [(2, 20)])
                && t.finally[..] != [(1, 20)]
        },
        prevented_from: Level::RepeatableRead,
    },
    Anomaly {
        name: "P4",
        title: "lost update",
        sessions: 2,
        steps: &[
            step(1, "select * from test where id = 1"),
            step(2, "select * from test where id = 1"),
            step(1, "update test set value = 11 where id = 1"),
            step(2, "update test set value = 12 where id = 1"),
            step(1, "commit"),
            step(2, "commit"),
        ],
        happened: |t| t.committed(1) && t.committed(2) && both_saw(t, (1, 10)),
        prevented_from: Level::RepeatableRead,
    },
    Anomaly {
        name: "G-single",
        title: "read skew",
        sessions: 2,
        steps: &[
            step(1, "select * from test where id = 1"),
            step(2, "select * from test where id = 1"),
            step(2, "select * from test where id = 2"),
            step(2, "update test set value = 12 where id = 1"),
            step(2, "update test set value = 18 where id = 2"),
            step(2, "commit"),
            step(1, "select * from test where id = 2"),
            step(1, "commit"),
        ],
        happened: |t| saw(t, 1, 10) && saw(t, 1, 18),
        prevented_from: Level::RepeatableRead,
    },
    Anomaly {
        name: "G-single-predicate",
        title: "read skew through predicates",
        sessions: 2,
        steps: &[
            step(1, "select * from test where value % 5 = 0"),
            step(2, "update test set value = 12 where value = 10"),
            step(2, "commit"),
            step(1, "select * from test where value % 3 = 0"),
            step(1, "commit"),
        ],
        happened: |t| saw(t, 1, 10) && saw(t, 1, 12),
        prevented_from: Level::RepeatableRead,
    },
    Anomaly {
        name: "G-single-write",
        title: "read skew, writing on what was read",
        sessions: 2,
        steps: &[
            step(1, "select * from test where id = 1"),
            step(2, "select * from test"),
            step(2, "update test set value = 12 where id = 1"),
            step(2, "update test set value = 18 where id = 2"),
            step(2, "commit"),
            step(1, "delete from test where value = 20"),
            step(1, "select * from test where id = 2"),
            step(1, "commit"),
        ],
        // T1 saw the table as of before T2, and deleted from the table as of after T2.
        happened: |t| {
            t.committed(1) && t.committed(2) && saw(t, 1, 10) && t.changed(1, "delete") == Some(0)
        },
        prevented_from: Level::RepeatableRead,
    },
    Anomaly {
        name: "G-single-write-2",
        title: "read skew, both writing",
        sessions: 2,
        steps: &[
            step(1, "select * from test where id = 1"),
            step(2, "select * from test"),
            step(2, "update test set value = 12 where id = 1"),
            step(1, "delete from test where value = 20"),
            step(2, "update test set value = 18 where id = 2"),
            step(1, "commit"),
            step(2, "commit"),
        ],
        // T1 precedes T2 in row 1. In row 2, T1 follows T2, whether T1's delete found the row or not.
        happened: |t| t.committed(1) && t.committed(2) && saw(t, 1, 10) && saw(t, 2, 20),
        prevented_from: Level::RepeatableRead,
    },
    Anomaly {
        name: "G2-item",
        title: "write skew on rows",
        sessions: 2,
        steps: &[
            step(1, "select * from test where id in (1, 2)"),
            step(2, "select * from test where id in (1, 2)"),
            step(1, "update test set value = 11 where id = 1"),
            step(2, "update test set value = 21 where id = 2"),
            step(1, "commit"),
            step(2, "commit"),
        ],
        happened: |t| {
            t.committed(1) && t.committed(2) && both_saw(t, (1, 10)) && both_saw(t, (2, 20))
        },
        prevented_from: Level::Serializable,
    },
    Anomaly {
        name: "G2",
        title: "write skew on predicates",
        sessions: 2,
        steps: &[
            step(1, "select * from test where value % 3 = 0"),
            step(2, "select * from test where value % 3 = 0"),
            step(1, "insert into test values (3, 30)"),
            step(2, "insert into test values (4, 42)"),
            step(1, "commit"),
            step(2, "commit"),
        ],
        happened: |t| {
            t.committed(1)
                && t.committed(2)
                && [1, 2]
                    .iter()
                    .all(|session| t.read(*session, 1).is_some_and(Vec::is_empty))
        },
        prevented_from: Level::Serializable,
    },
    Anomaly {
        name: "G2-two-edges",
        title: "write skew seen by a reader, two edges",
        sessions: 3,
        steps: &[
            step(1, "select * from test"),
            step(2, "update test set value = value + 5 where id = 2"),
            step(2, "commit"),
            step(3, "select * from test"),
            step(3, "commit"),
            step(1, "update test set value = 0 where id = 1"),
            step(1, "commit"),
        ],
        happened: |t| {
            (1..=3).all(|session| t.committed(session))
                && t.read(1, 1)
                    .is_some_and(|rows| rows[..] == [(1, 10), (2, 20)])
                && t.read(3, 1)
                    .is_some_and(|rows| rows[..] == [(1, 10), (2, 25)])
        },
        prevented_from: Level::Serializable,
    },
];

/// Returns whether the session read this value anywhere.
fn saw(transcript: &Transcript, session: usize, value: i64) -> bool {
    transcript
        .reads(session)
        .into_iter()
        .flatten()
        .any(|row| row.1 == value)
}

/// Returns whether the first two sessions both read this row.
fn both_saw(transcript: &Transcript, row: (i64, i64)) -> bool {
    [1, 2].iter().all(|session| {
        transcript
            .reads(*session)
            .into_iter()
            .flatten()
            .any(|r| *r == row)
    })
}

/// Returns the statements that make the table as every script begins with it.
#[must_use]
pub fn table(engine: &str) -> [String; 2] {
    [
        format!("CREATE OR REPLACE TABLE test (id int primary key, value int) ENGINE={engine}"),
        "INSERT INTO test VALUES (1, 10), (2, 20)".to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::behaviour::script::{Answer, Played, Rows};

    /// The simplest server: it prevents nothing.
    ///
    /// Every statement reads and changes the one table at once, no session waits, and ROLLBACK restores what the
    /// session changed.
    #[derive(Default)]
    struct Free {
        rows: BTreeMap<i64, i64>,
        before: BTreeMap<usize, BTreeMap<i64, Option<i64>>>,
    }

    impl Free {
        fn new() -> Self {
            Self {
                rows: BTreeMap::from([(1, 10), (2, 20)]),
                before: BTreeMap::new(),
            }
        }

        fn set(&mut self, session: usize, id: i64, value: Option<i64>) {
            let before = self.rows.get(&id).copied();
            self.before
                .entry(session)
                .or_default()
                .entry(id)
                .or_insert(before);
            match value {
                Some(value) => self.rows.insert(id, value),
                None => self.rows.remove(&id),
            };
        }

        fn run(&mut self, session: usize, statement: &str) -> Answer {
            match statement {
                "commit" => {
                    self.before.remove(&session);
                    return Answer::Changed(0);
                }
                "rollback" => {
                    for (id, value) in self.before.remove(&session).unwrap_or_default() {
                        self.set(0, id, value);
                    }
                    return Answer::Changed(0);
                }
                _ => {}
            }
            let (head, condition) = statement.split_once(" where ").unwrap_or((statement, ""));
            let chosen: Rows = self
                .rows
                .iter()
                .map(|(id, value)| (*id, *value))
                .filter(|(id, value)| match condition {
                    "" => true,
                    "id in (1, 2)" => (1..=2).contains(id),
                    other => {
                        let (left, right) = other.split_once(" = ").expect("an equation");
                        let right: i64 = right.parse().expect("a number");
                        match left.split_once(" % ") {
                            Some((_, by)) => value % by.parse::<i64>().expect("a number") == right,
                            None if left == "id" => *id == right,
                            None => *value == right,
                        }
                    }
                })
                .collect();
            if head.starts_with("select") {
                return Answer::Rows(chosen);
            }
            if let Some(values) = head.strip_prefix("insert into test values (") {
                let (id, value) = values.trim_end_matches(')').split_once(", ").expect("two");
                self.set(session, id.parse().expect("id"), value.parse().ok());
                return Answer::Changed(1);
            }
            let new = head.strip_prefix("update test set value = ");
            for (id, value) in &chosen {
                let new = new.map(|new| match new.strip_prefix("value + ") {
                    Some(more) => value + more.parse::<i64>().expect("a number"),
                    None => new.parse().expect("a number"),
                });
                self.set(session, *id, new);
            }
            Answer::Changed(chosen.len() as u64)
        }
    }

    fn play(steps: &[Step]) -> Transcript {
        let mut server = Free::new();
        let steps = steps
            .iter()
            .map(|step| Played {
                step: *step,
                answer: server.run(step.session, step.statement),
                waited: false,
                begun_ms: 0.0,
                ms: 0.0,
            })
            .collect();
        Transcript {
            steps,
            finally: server.rows.into_iter().collect(),
        }
    }

    #[test]
    fn a_server_that_prevents_nothing_shows_every_anomaly() {
        for anomaly in ALL {
            let mut steps = anomaly.steps.to_vec();
            if anomaly.name == "PMP-write" {
                // On a real server, T2 sees the old table through its snapshot. This server has none, so T2 must read
                // before T1 writes.
                steps.swap(0, 1);
            }
            let transcript = play(&steps);
            assert!(
                (anomaly.happened)(&transcript),
                "{}: {:#?}",
                anomaly.name,
                transcript.lines()
            );
        }
    }

    #[test]
    fn a_server_that_runs_one_session_after_another_shows_none() {
        for anomaly in ALL {
            for order in [
                [1, 2, 3],
                [2, 1, 3],
                [3, 2, 1],
                [1, 3, 2],
                [2, 3, 1],
                [3, 1, 2],
            ] {
                let serial: Vec<Step> = order
                    .iter()
                    .flat_map(|session| anomaly.steps.iter().filter(move |s| s.session == *session))
                    .copied()
                    .collect();
                let transcript = play(&serial);
                assert!(
                    !(anomaly.happened)(&transcript),
                    "{} {order:?}: {:#?}",
                    anomaly.name,
                    transcript.lines()
                );
            }
        }
    }

    #[test]
    fn an_error_in_any_session_prevents_what_takes_both() {
        for anomaly in ALL
            .iter()
            .filter(|a| a.prevented_from == Level::Serializable)
        {
            for victim in 1..=anomaly.sessions {
                let mut transcript = play(anomaly.steps);
                for played in &mut transcript.steps {
                    if played.step.session == victim && played.step.ends() {
                        played.answer = Answer::Skipped;
                    }
                }
                assert!(!(anomaly.happened)(&transcript), "{}", anomaly.name);
            }
        }
    }

    #[test]
    fn every_session_of_a_script_ends() {
        for anomaly in ALL {
            for session in 1..=anomaly.sessions {
                let last = anomaly.steps.iter().rfind(|step| step.session == session);
                assert!(last.is_some_and(Step::ends), "{} T{session}", anomaly.name);
            }
        }
    }
}
