//! Tests the checker on handmade histories: it must find each known violation and report its right kind.

use super::*;
use crate::histories::history::{
    first_group, version, Deed, Key, Operation, Predicate, Span, Transaction, Version, FIRST_LIST,
    FIRST_PLACE,
};

/// A history under construction; operations happen in the order of the calls.
#[derive(Default)]
struct Making {
    clock: u64,
    transactions: Vec<Transaction>,
}

impl Making {
    fn begin(&mut self) -> usize {
        self.clock += 1;
        self.transactions.push(Transaction {
            began: self.clock,
            commit_asked: 0,
            ended: 0,
            ending: Ending::Aborted,
            operations: Vec::new(),
        });
        self.transactions.len() - 1
    }

    fn begin_many<const N: usize>(&mut self) -> [usize; N] {
        std::array::from_fn(|_| self.begin())
    }

    fn deed(&mut self, transaction: usize, deed: Deed) {
        self.clock += 2;
        let span = Span {
            from: self.clock - 1,
            to: self.clock,
        };
        self.transactions[transaction]
            .operations
            .push(Operation { deed, span });
    }

    fn read(&mut self, transaction: usize, key: Key, found: Version) {
        self.deed(transaction, Deed::Read { key, found });
    }

    fn write(&mut self, transaction: usize, key: Key, before: Version) -> Version {
        self.place(transaction, key, before, None)
    }

    fn place(&mut self, t: usize, key: Key, before: Version, state: Option<u8>) -> Version {
        let operation = self.transactions[t].operations.len();
        let written = version(u32::try_from(t).unwrap(), u32::try_from(operation).unwrap());
        self.deed(
            t,
            Deed::Write {
                key,
                written,
                before,
                state,
            },
        );
        written
    }

    fn scan(&mut self, t: usize, predicate: Predicate, rows: &[(Key, Version)]) {
        let found = rows.to_vec();
        self.deed(t, Deed::Scan { predicate, found });
    }

    fn end(&mut self, transaction: usize, ending: Ending) {
        self.clock += 2;
        let it = &mut self.transactions[transaction];
        if ending != Ending::Aborted {
            it.commit_asked = self.clock - 1;
        }
        it.ended = self.clock;
        it.ending = ending;
    }

    fn commit(&mut self, transaction: usize) {
        self.end(transaction, Ending::Committed);
    }

    /// Ends the history with the final versions of registers, places and lists.
    fn close(mut self, last: &[(Key, Version)]) -> History {
        let closing = self.begin();
        for (key, found) in last {
            self.read(closing, *key, *found);
        }
        self.commit(closing);
        History {
            transactions: self.transactions,
        }
    }
}

/// Asserts that the checker finds this violation at these levels, and none at the others.
fn assert_found(history: &History, violation: Violation, levels: &[Level]) {
    for level in &Level::ALL[1..] {
        let found = check(history, *level);
        let kinds: Vec<Violation> = found.violations.keys().copied().collect();
        if levels.contains(level) {
            assert!(kinds.contains(&violation), "{level:?}: {found:#?}");
        } else {
            assert!(kinds.is_empty(), "{level:?}: {found:#?}");
        }
    }
}

const ALL: [Level; 3] = [
    Level::ReadCommitted,
    Level::RepeatableRead,
    Level::Serializable,
];
const STRONG: [Level; 2] = [Level::RepeatableRead, Level::Serializable];
const STRONGEST: [Level; 1] = [Level::Serializable];

#[test]
fn one_after_another_is_right_at_every_level() {
    let mut m = Making::default();
    let mut last = [0; 3];
    for turn in 0..30_usize {
        let t = m.begin();
        m.read(t, u32::try_from(turn % 3).unwrap(), last[turn % 3]);
        let key = (turn + 1) % 3;
        last[key] = m.write(t, u32::try_from(key).unwrap(), last[key]);
        m.commit(t);
    }
    let history = m.close(&[(0, last[0]), (1, last[1]), (2, last[2])]);
    assert_found(&history, Violation::DirtyWrite, &[]);
}

#[test]
fn dirty_write() {
    // Each transaction overwrites the other one, in different keys.
    let mut m = Making::default();
    let [a, b] = m.begin_many();
    let ax = m.write(a, 0, 0);
    let bx = m.write(b, 0, ax);
    let by = m.write(b, 1, 0);
    let ay = m.write(a, 1, by);
    m.commit(a);
    m.commit(b);
    assert_found(&m.close(&[(0, bx), (1, ay)]), Violation::DirtyWrite, &ALL);
}

#[test]
fn a_write_over_one_that_is_rolled_back() {
    let mut m = Making::default();
    let [a, b] = m.begin_many();
    let ax = m.write(a, 0, 0);
    let bx = m.write(b, 0, ax);
    m.commit(b);
    m.end(a, Ending::Aborted);
    assert_found(&m.close(&[(0, bx)]), Violation::DirtyWrite, &ALL);
}

#[test]
fn aborted_read() {
    let mut m = Making::default();
    let [a, b] = m.begin_many();
    let ax = m.write(a, 0, 0);
    m.read(b, 0, ax);
    m.commit(b);
    m.end(a, Ending::Aborted);
    assert_found(&m.close(&[(0, 0)]), Violation::AbortedRead, &ALL);
}

#[test]
fn intermediate_read() {
    let mut m = Making::default();
    let [a, b] = m.begin_many();
    let first = m.write(a, 0, 0);
    let second = m.write(a, 0, first);
    m.commit(a);
    m.read(b, 0, first);
    m.commit(b);
    assert_found(&m.close(&[(0, second)]), Violation::IntermediateRead, &ALL);
}

#[test]
fn circular_information_flow() {
    let mut m = Making::default();
    let [a, b] = m.begin_many();
    let ax = m.write(a, 0, 0);
    let by = m.write(b, 1, 0);
    m.read(a, 1, by);
    m.read(b, 0, ax);
    m.commit(a);
    m.commit(b);
    let history = m.close(&[(0, ax), (1, by)]);
    assert_found(&history, Violation::CircularFlow, &ALL);
    assert_found(&history, Violation::DirtyRead, &ALL);
}

#[test]
fn lost_update_known_by_what_was_replaced() {
    let mut m = Making::default();
    let [a, b] = m.begin_many();
    m.write(a, 0, 0);
    m.commit(a);
    let bx = m.write(b, 0, 0);
    m.commit(b);
    assert_found(&m.close(&[(0, bx)]), Violation::LostUpdate, &ALL);
}

#[test]
fn lost_update_known_by_what_was_read() {
    // B overwrites A's version on the basis of an older read. READ COMMITTED allows it.
    let mut m = Making::default();
    let [a, b] = m.begin_many();
    m.read(b, 0, 0);
    let ax = m.write(a, 0, 0);
    m.commit(a);
    let bx = m.write(b, 0, ax);
    m.commit(b);
    assert_found(&m.close(&[(0, bx)]), Violation::ReadSkew, &STRONG);
}

#[test]
fn read_skew() {
    let mut m = Making::default();
    let [a, b] = m.begin_many();
    m.read(a, 0, 0);
    let bx = m.write(b, 0, 0);
    let by = m.write(b, 1, 0);
    m.commit(b);
    m.read(a, 1, by);
    m.commit(a);
    assert_found(&m.close(&[(0, bx), (1, by)]), Violation::ReadSkew, &STRONG);
}

#[test]
fn write_skew() {
    let mut m = Making::default();
    let [a, b] = m.begin_many();
    m.read(a, 1, 0);
    m.read(b, 0, 0);
    let ax = m.write(a, 0, 0);
    let by = m.write(b, 1, 0);
    m.commit(a);
    m.commit(b);
    assert_found(
        &m.close(&[(0, ax), (1, by)]),
        Violation::WriteSkew,
        &STRONGEST,
    );
}

#[test]
fn write_skew_seen_by_a_reader() {
    let mut m = Making::default();
    let [a, b] = m.begin_many();
    m.read(a, 0, 0);
    m.read(a, 1, 0);
    let by = m.write(b, 1, 0);
    m.commit(b);
    let reader = m.begin();
    m.read(reader, 0, 0);
    m.read(reader, 1, by);
    m.commit(reader);
    let ax = m.write(a, 0, 0);
    m.commit(a);
    assert_found(
        &m.close(&[(0, ax), (1, by)]),
        Violation::WriteSkew,
        &STRONGEST,
    );
}

#[test]
fn stale_read() {
    let mut m = Making::default();
    let a = m.begin();
    let ax = m.write(a, 0, 0);
    m.commit(a);
    let b = m.begin();
    m.read(b, 0, 0);
    m.commit(b);
    assert_found(&m.close(&[(0, ax)]), Violation::StaleRead, &ALL);
}

#[test]
fn own_writes_must_be_seen() {
    let mut m = Making::default();
    let a = m.begin();
    let ax = m.write(a, 0, 0);
    m.read(a, 0, 0);
    m.commit(a);
    assert_found(&m.close(&[(0, ax)]), Violation::OwnWrite, &ALL);
}

/// Returns a place that begins in `group`, and a place that begins without a row.
fn inside_and_outside(group: u8) -> (Key, Key) {
    let first = |state| {
        (FIRST_PLACE..)
            .find(|place| crate::histories::history::first_group(*place) == state)
            .unwrap()
    };
    (first(Some(group)), first(None))
}

#[test]
fn a_predicate_that_misses_or_invents_rows() {
    let (inside, outside) = inside_and_outside(1);
    for (rows, wrong) in [
        (vec![(inside, 0)], false),
        (vec![], true),
        (vec![(inside, 0), (outside, 0)], true),
    ] {
        let mut m = Making::default();
        let a = m.begin();
        m.scan(a, Predicate::In(1), &rows);
        m.commit(a);
        let history = m.close(&[(inside, 0), (outside, 0)]);
        let levels: &[Level] = if wrong { &ALL } else { &[] };
        assert_found(&history, Violation::Predicate, levels);
    }
}

#[test]
fn a_phantom_is_read_skew() {
    // A scans; B moves a place into the group and commits; A scans again.
    let (inside, outside) = inside_and_outside(1);
    let mut m = Making::default();
    let [a, b] = m.begin_many();
    m.scan(a, Predicate::In(1), &[(inside, 0)]);
    let came = m.place(b, outside, 0, Some(1));
    m.commit(b);
    m.scan(a, Predicate::In(1), &[(inside, 0), (outside, came)]);
    m.commit(a);
    let history = m.close(&[(inside, 0), (outside, came)]);
    assert_found(&history, Violation::ReadSkew, &STRONG);
}

#[test]
fn a_row_that_went_and_is_missed_is_read_skew() {
    let (inside, outside) = inside_and_outside(1);
    let mut m = Making::default();
    let [a, b] = m.begin_many();
    m.read(a, 0, 0);
    let bx = m.write(b, 0, 0);
    let went = m.place(b, inside, 0, None);
    m.commit(b);
    m.scan(a, Predicate::Present, &[]);
    m.commit(a);
    let history = m.close(&[(0, bx), (inside, went), (outside, 0)]);
    assert_found(&history, Violation::ReadSkew, &STRONG);
}

#[test]
fn write_skew_on_predicates() {
    let (inside, outside) = inside_and_outside(1);
    let mut m = Making::default();
    let [a, b] = m.begin_many();
    m.scan(a, Predicate::In(0), &[]);
    m.scan(b, Predicate::In(0), &[]);
    let ax = m.place(a, inside, 0, Some(0));
    let bx = m.place(b, outside, 0, Some(0));
    m.commit(a);
    m.commit(b);
    let history = m.close(&[(inside, ax), (outside, bx)]);
    assert_found(&history, Violation::WriteSkew, &STRONGEST);
}

#[test]
fn a_statement_that_sees_half_a_transaction() {
    // B moves two places at once; A's only scan sees one of them moved.
    let (inside, outside) = inside_and_outside(1);
    let mut m = Making::default();
    let a = m.begin();
    let b = m.begin();
    let bi = m.place(b, inside, 0, Some(2));
    let bo = m.place(b, outside, 0, Some(2));
    m.commit(b);
    // The scan began before B committed.
    let from = m.transactions[b].began;
    m.scan(a, Predicate::Present, &[(inside, 0), (outside, bo)]);
    m.transactions[a].operations[0].span.from = from;
    m.commit(a);
    let history = m.close(&[(inside, bi), (outside, bo)]);
    let found = check(&history, Level::ReadCommitted);
    assert!(
        found.violations.contains_key(&Violation::TornStatement),
        "{found:#?}"
    );
    assert!(check(&history, Level::RepeatableRead)
        .violations
        .contains_key(&Violation::ReadSkew));
}

#[test]
fn lists_tell_lost_elements() {
    let list = FIRST_LIST;
    let mut m = Making::default();
    let [a, b, c] = m.begin_many();
    let append = |m: &mut Making, t: usize, before: &[Version]| {
        let written = version(u32::try_from(t).unwrap(), 0);
        let before = before.to_vec();
        m.deed(
            t,
            Deed::Append {
                key: list,
                written,
                before,
            },
        );
        m.commit(t);
        written
    };
    let first = append(&mut m, a, &[]);
    let second = append(&mut m, b, &[]);
    let third = append(&mut m, c, &[second]);
    let closing = m.begin();
    let found = vec![second, third];
    m.deed(closing, Deed::ReadList { key: list, found });
    m.commit(closing);
    let history = History {
        transactions: m.transactions,
    };
    assert_ne!(first, second);
    assert_found(&history, Violation::LostUpdate, &ALL);
}

#[test]
fn a_crash_may_undo_what_was_not_acknowledged_but_only_whole() {
    for kept in [0, 1, 2] {
        let mut m = Making::default();
        let a = m.begin();
        let ax = m.write(a, 0, 0);
        let ay = m.write(a, 1, 0);
        m.end(a, Ending::Unknown);
        let last = [
            (0, if kept > 0 { ax } else { 0 }),
            (1, if kept > 1 { ay } else { 0 }),
        ];
        let found = check(&m.close(&last), Level::RepeatableRead);
        assert_eq!(
            found.violations.contains_key(&Violation::Torn),
            kept == 1,
            "{found:#?}"
        );
        assert_eq!(
            (found.kept, found.undone),
            (u64::from(kept > 0), u64::from(kept == 0))
        );
    }
}

/// Readers see commits that are not yet durable, also deletions.
#[test]
fn a_place_that_was_missed_may_have_been_deleted_by_a_commit_that_a_crash_lost() {
    let key = (FIRST_PLACE..FIRST_LIST)
        .find(|key| first_group(*key).is_some())
        .expect("a place that is there from the beginning");
    for (ending, asked_first) in [
        (Ending::Unknown, true),
        (Ending::Unknown, false),
        (Ending::Aborted, true),
    ] {
        let mut m = Making::default();
        let [deleting, reader] = m.begin_many();
        m.place(deleting, key, 0, None);
        if asked_first {
            m.end(deleting, ending);
        }
        m.scan(reader, Predicate::Present, &[]);
        m.commit(reader);
        if !asked_first {
            m.end(deleting, ending);
        }
        let found = check(&m.close(&[(key, 0)]), Level::RepeatableRead);
        let explained = ending == Ending::Unknown && asked_first;
        assert_eq!(found.violations.is_empty(), explained, "{found:#?}");
        assert_eq!(found.seen_and_lost, u64::from(explained));
    }
}

#[test]
fn an_acknowledged_commit_that_a_crash_lost_is_found() {
    let mut m = Making::default();
    let a = m.begin();
    m.write(a, 0, 0);
    m.commit(a);
    assert_found(&m.close(&[(0, 0)]), Violation::LostUpdate, &ALL);
}
