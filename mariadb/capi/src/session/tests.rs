//! Statements and savepoints, through the functions that the server calls.

use peregrine::check::Report;
use peregrine::os::simulated::{FaultOn, SimulatedOs};
use peregrine::{Column, ColumnType, Database, Key, Options, RowLock, TableSchema, Value};

use super::savepoints::{
    peregrine_savepoint_release, peregrine_savepoint_rollback, peregrine_savepoint_set,
};
use super::*;
use crate::c_types::{Code, Target};
use crate::calls::changes::{peregrine_begin_bulk_insert, peregrine_end_bulk_insert};
use crate::calls::rows::peregrine_multi_get;
use crate::fixture::{record, Open, Record, END, OK};

impl Open {
    /// Returns those of the ids that have a row.
    fn found(&self, ids: &[u32]) -> Vec<u32> {
        self.use_key(0, 0);
        let found = ids.iter().copied().filter(|id| {
            let mut rows: [Record; 1] = [[0; 16]];
            let columns = 1u64;
            let target = Target {
                record: rows.as_mut_ptr().cast(),
                columns: &columns,
            };
            let (key, mut wanted) = (id.to_le_bytes(), [1u8]);
            // SAFETY: one key, one record, one mark.
            let code = unsafe {
                peregrine_multi_get(
                    self.handle,
                    self.session,
                    key.as_ptr(),
                    key.len(),
                    1,
                    target,
                    size_of::<Record>(),
                    wanted.as_mut_ptr(),
                )
            };
            assert!([OK, END].contains(&code));
            wanted[0] != 0
        });
        found.collect()
    }

    fn savepoint(&self) -> u64 {
        let mut number = 0;
        // SAFETY: the session is this thread's.
        let code = unsafe { peregrine_savepoint_set(self.session, &mut number) };
        assert_eq!(code, OK);
        number
    }

    fn roll_back_to(&self, savepoint: u64) {
        // SAFETY: the session is this thread's.
        let code = unsafe { peregrine_savepoint_rollback(self.session, savepoint) };
        assert_eq!(code, OK);
    }

    fn release(&self, savepoint: u64, later: bool) {
        // SAFETY: the session is this thread's.
        let code = unsafe { peregrine_savepoint_release(self.session, savepoint, later.into()) };
        assert_eq!(code, OK);
    }

    fn end_statement(&self) {
        // SAFETY: the session is this thread's.
        assert_eq!(unsafe { peregrine_statement_end(self.session) }, OK);
    }

    /// The number of savepoints that the session keeps.
    fn kept(&self) -> usize {
        // SAFETY: the session is this thread's.
        unsafe { session(self.session) }.unwrap().savepoints.len()
    }

    fn roll_statement_back(&self) {
        // SAFETY: the session is this thread's.
        assert_eq!(unsafe { peregrine_statement_rollback(self.session) }, OK);
    }

    /// Commits; returns the code that the server gets.
    fn end_transaction(&self) -> i32 {
        // SAFETY: the session is this thread's.
        unsafe { peregrine_session_commit(self.session, 1) }
    }

    fn begin_bulk_insert(&self) {
        // SAFETY: handle and session are this thread's.
        let code = unsafe { peregrine_begin_bulk_insert(self.handle, self.session) };
        assert_eq!(code, OK);
    }

    fn end_bulk_insert(&self) {
        // SAFETY: handle and session are this thread's.
        let code = unsafe { peregrine_end_bulk_insert(self.handle, self.session) };
        assert_eq!(code, OK);
    }

    /// Checks that each row has its index entries, and that no entry lacks its row.
    fn is_sound(&self) {
        // SAFETY: the session is this thread's.
        let engine = unsafe { session(self.session) }.unwrap().engine();
        let mut report = Report::default();
        engine
            .database
            .check_table("t", &|| false, &mut report)
            .unwrap();
        assert_eq!(report.problems, Vec::<String>::new());
    }
}

fn row(id: u32) -> Record {
    record(id, Some(1), None)
}

/// A stored function may set a savepoint and roll back to it while the calling statement has changed rows already.
#[test]
fn a_failing_statement_is_undone_whole_though_a_function_rolled_back_within_it() {
    let open = Open::new();
    open.start();
    open.insert(row(1));
    open.start();
    open.insert(row(2));
    let savepoint = open.savepoint();
    open.insert(row(3));
    open.roll_back_to(savepoint);
    open.insert(row(4));
    open.roll_statement_back();
    open.start();
    assert_eq!(open.found(&[1, 2, 3, 4]), [1]);
}

#[test]
fn a_statement_that_begins_with_a_savepoint_is_undone_from_there() {
    let open = Open::new();
    open.start();
    open.insert(row(1));
    open.start();
    let savepoint = open.savepoint();
    open.insert(row(2));
    open.roll_back_to(savepoint);
    open.insert(row(3));
    open.roll_statement_back();
    open.start();
    assert_eq!(open.found(&[1, 2, 3]), [1]);
    // A savepoint of an earlier statement: a rollback to it undoes more than the mark of a later statement.
    let savepoint = open.savepoint();
    open.start();
    open.insert(row(4));
    open.start();
    open.roll_back_to(savepoint);
    open.insert(row(5));
    open.roll_statement_back();
    open.start();
    assert_eq!(open.found(&[1, 4, 5]), [1]);
}

#[test]
fn savepoints_behind_a_released_one_are_forgotten() {
    let open = Open::new();
    open.start();
    open.insert(row(1));
    open.end_statement();
    let first = open.savepoint();
    for id in 2..5 {
        let released = open.savepoint();
        open.start();
        open.insert(row(id));
        open.end_statement();
        open.savepoint();
        open.savepoint();
        open.release(released, true);
        assert_eq!(open.kept(), 1);
    }
    open.roll_back_to(first);
    open.start();
    assert_eq!(open.found(&[1, 2, 3, 4]), [1]);
}

#[test]
fn a_savepoint_that_is_set_anew_leaves_those_that_were_set_meanwhile() {
    let open = Open::new();
    open.start();
    open.insert(row(1));
    open.end_statement();
    let (old, between) = (open.savepoint(), open.savepoint());
    open.start();
    open.insert(row(2));
    open.end_statement();
    open.release(old, false);
    let anew = open.savepoint();
    assert_eq!(open.kept(), 2);
    open.roll_back_to(between);
    // SAFETY: the session is this thread's.
    let gone = unsafe { peregrine_savepoint_rollback(open.session, anew) };
    assert_eq!(gone, Code::Invalid as i32);
    assert_eq!(open.kept(), 1);
    open.start();
    assert_eq!(open.found(&[1, 2]), [1]);
}

#[test]
fn the_savepoints_of_functions_go_with_the_statement_that_has_called_them() {
    let open = Open::new();
    open.start();
    open.insert(row(1));
    open.end_statement();
    let before = open.savepoint();
    for rolls_back in [false, true] {
        open.start();
        open.savepoint();
        open.insert(row(2));
        open.savepoint();
        assert_eq!(open.kept(), 3);
        match rolls_back {
            false => open.end_statement(),
            true => open.roll_statement_back(),
        }
        assert_eq!(open.kept(), 1);
        open.roll_back_to(before);
    }
    open.start();
    assert_eq!(open.found(&[1, 2]), [1]);
}

/// The commit is refused, and its rollback fails too: the engine keeps the transaction.
#[test]
fn a_kill_reaches_the_statement_after_a_refused_commit_whose_rollback_failed() {
    const ROWS: u32 = 1500;
    let os = SimulatedOs::new(1);
    let options = Options {
        pool_bytes: 1 << 20,
        ..Options::default()
    };
    let database = Database::open_on(Arc::new(os.clone()), "/db", options).unwrap();
    let schema = TableSchema {
        columns: vec![
            Column::new(
                "id",
                ColumnType::Int {
                    bytes: 4,
                    signed: false,
                },
            ),
            Column::new("body", ColumnType::VarBytes { max: 4000 }),
        ],
        primary: Some(Key::new(&[0])),
        indexes: vec![],
        user: vec![],
    };
    let table = database.create_table("t", &schema).unwrap();
    // Bodies that don't compress.
    let mut state = 1u32;
    let mut next_body = || -> Vec<u8> {
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            state as u8
        };
        (0..2000).map(|_| next()).collect()
    };
    let mut shared: SharedEngine = Arc::new(Engine::new(database, Duration::from_secs(1)));
    let mut pointer = std::ptr::null_mut();
    // SAFETY: the engine lives longer than the session, and the pointer is writable.
    let made = unsafe { peregrine_session_new(&mut shared, 1, &mut pointer) };
    assert_eq!(made, OK);
    {
        // SAFETY: the session is this thread's, and not used otherwise meanwhile.
        let session = unsafe { session(pointer) }.unwrap();
        let start = |session: &mut Session| session.start(Isolation::ReadCommitted, 1, 0).unwrap();
        start(session);
        for id in 0..ROWS {
            let body = next_body();
            let row = [Value::from(id), Value::Bytes(&body)];
            session.changing().unwrap().insert(&table, &row).unwrap();
        }
        session.commit(true).unwrap();
        start(session);
        for id in 0..ROWS {
            let key = table.encode_key(0, &[id.into()]).unwrap();
            let body = next_body();
            let row = [Value::from(id), Value::Bytes(&body)];
            let transaction = session.changing().unwrap();
            transaction.update(&table, &key, &row).unwrap();
        }
        os.fail(FaultOn::Read, 0, std::io::ErrorKind::Other);
        session.rollback_statement().unwrap_err();
        session.commit_ordered().unwrap();
        session.commit(true).unwrap_err();
        os.heal();
        start(session);
    }
    // SAFETY: the session is this thread's; only its part for other threads is touched.
    unsafe { peregrine_session_kill(pointer) };
    {
        // SAFETY: as above.
        let session = unsafe { session(pointer) }.unwrap();
        let killed = session.transaction().unwrap().kill_handle().is_killed();
        assert!(killed);
    }
    // SAFETY: it is not used again.
    unsafe { peregrine_session_free(pointer) };
}

/// The server may ignore the error, and end the statement as if it had succeeded.
#[test]
fn after_a_conflict_nothing_but_a_rollback_succeeds() {
    let conflict = Code::Conflict as i32;
    let open = Open::new();
    for rolls_back in [false, true] {
        open.start();
        open.insert(row(1));
        assert_eq!(open.end_transaction(), OK);
        open.start();
        {
            // SAFETY: the session is this thread's, and not used otherwise meanwhile.
            let session = unsafe { session(open.session) }.unwrap();
            let engine = Arc::clone(session.engine());
            let table = engine.database.table("t").unwrap();
            let key = table.encode_key(0, &[1u32.into()]).unwrap();
            session.changing().unwrap().take_snapshot();
            let mut other = engine.database.begin(Isolation::ReadCommitted);
            other.delete(&table, &key).unwrap();
            other.commit().unwrap();
            let transaction = session.transaction().unwrap();
            let refused = transaction.get_locked(&table, &key, RowLock::Exclusive, |_| ());
            assert!(matches!(refused, Err(peregrine::Error::WriteConflict)));
        }
        // The calls that the server makes after a failed statement give no second error.
        if rolls_back {
            open.roll_statement_back();
        }
        let mut number = 0;
        // SAFETY: the session is this thread's, the place writable.
        unsafe {
            assert_eq!(peregrine_statement_end(open.session), conflict);
            assert_eq!(peregrine_savepoint_set(open.session, &mut number), conflict);
        }
        assert_eq!(open.end_transaction(), conflict);
        // The next statement begins another transaction.
        open.start();
        assert!(open.found(&[1]).is_empty());
        open.end_statement();
        assert_eq!(open.end_transaction(), OK);
    }
}

/// The server does not end the bulk insert of a failed statement.
#[test]
fn a_bulk_insert_that_is_not_ended_goes_with_its_statement_or_is_whole() {
    let open = Open::new();
    open.start();
    open.insert(row(1));
    open.end_statement();
    open.start();
    open.begin_bulk_insert();
    open.insert(row(2));
    open.roll_statement_back();
    open.start();
    open.insert(row(3));
    open.end_statement();
    assert_eq!(open.end_transaction(), OK);
    open.is_sound();
    // A function may have handled the error: then its rows stay.
    open.start();
    open.begin_bulk_insert();
    open.insert(row(4));
    open.end_statement();
    open.start();
    open.insert(row(5));
    open.begin_bulk_insert();
    open.insert(row(6));
    open.end_bulk_insert();
    open.end_statement();
    assert_eq!(open.end_transaction(), OK);
    open.is_sound();
    open.start();
    assert_eq!(open.found(&[1, 2, 3, 4, 5, 6]), [1, 3, 4, 5, 6]);
}
