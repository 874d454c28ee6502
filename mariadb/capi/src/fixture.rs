//! A table of three columns, opened as the server opens it: for tests.

use std::ptr::{null, null_mut};

use crate::c_types::{
    Code, ColumnDefinition, EngineOptions, KeyDefinition, KeyPartDefinition, TableDefinition,
};
use crate::calls::changes::peregrine_insert;
use crate::calls::rows::*;
use crate::engine::{peregrine_engine_close, peregrine_engine_open, SharedEngine};
use crate::handle::Handle;
use crate::session::*;
use crate::table::{peregrine_table_close, peregrine_table_create, peregrine_table_open, TableBox};

pub(crate) const OK: i32 = Code::Ok as i32;
pub(crate) const END: i32 = Code::End as i32;

/// A record: a byte of null bits, 4 bytes of id, 3 of a signed amount (null bit 1), and 5 fixed bytes (null bit 2).
pub(crate) type Record = [u8; 16];

pub(crate) fn record(id: u32, amount: Option<i32>, fixed: Option<&[u8; 5]>) -> Record {
    let mut record = [0; 16];
    record[1..5].copy_from_slice(&id.to_le_bytes());
    match amount {
        Some(amount) => record[5..8].copy_from_slice(&amount.to_le_bytes()[..3]),
        None => record[0] |= 1,
    }
    match fixed {
        Some(fixed) => record[8..13].copy_from_slice(fixed),
        None => record[0] |= 2,
    }
    record
}

/// No column here has a collation.
unsafe extern "C" fn no_sort_key(
    _: u32,
    _: *const u8,
    _: usize,
    _: u32,
    _: *mut u8,
    _: usize,
) -> usize {
    usize::MAX
}

fn column(kind: u32, offset: u32, length: u32, null_bit: u32) -> ColumnDefinition {
    ColumnDefinition {
        name: c"column".as_ptr(),
        type_text: c"type".as_ptr(),
        rest: c" rest".as_ptr(),
        name_length: 6,
        type_length: 4,
        rest_length: 5,
        kind,
        offset,
        length,
        length_bytes: 0,
        null_offset: 0,
        null_bit,
        collation: 0,
        pad: 0,
        pad_length: 0,
    }
}

/// Calls `call` with the definition of the table.
///
/// Its keys, by number: 0, the clustered key of the id; 1, the amount; 2, unique, the fixed bytes.
pub(crate) fn with_definition<R>(keys: &[usize], call: impl FnOnce(&TableDefinition) -> R) -> R {
    let columns = [
        column(1, 1, 4, 0),
        column(0, 5, 3, 1),
        column(4, 8, 5, 2),
        column(3, 1, 8, 0),
    ];
    let part = |column, key_length| KeyPartDefinition {
        column,
        prefix: 0,
        key_length,
        sort_length: 0,
        descending: 0,
    };
    let clustered = [part(0, 4)];
    let (second, third) = ([part(1, 3), part(0, 4)], [part(2, 5), part(0, 4)]);
    let key = |parts: &[KeyPartDefinition], unique| KeyDefinition {
        name: c"key".as_ptr(),
        name_length: 3,
        part_count: 1,
        extra_count: parts.len() as u32 - 1,
        unique,
        parts: parts.as_ptr(),
    };
    let definitions: Vec<KeyDefinition> = keys
        .iter()
        .map(|number| match number {
            0 => key(&clustered, 1),
            1 => key(&second, 0),
            _ => key(&third, 1),
        })
        .collect();
    let nulls = [0; 16];
    call(&TableDefinition {
        columns: columns.as_ptr(),
        keys: definitions.as_ptr(),
        column_count: 4,
        key_count: definitions.len() as u32,
        primary: 0,
        record_length: 16,
        nulls: nulls.as_ptr(),
        rest: std::ptr::null(),
        rest_length: 0,
    })
}

/// A table with a handle and a session, open until the end of the test.
pub(crate) struct Open {
    pub engine: *mut SharedEngine,
    pub table: *mut TableBox,
    pub handle: *mut Handle,
    pub session: *mut SessionBox,
    _dir: tempfile::TempDir,
}

impl Open {
    pub fn new() -> Open {
        Open::with_keys(&[0, 1])
    }

    /// Opens the table with these keys, the clustered one first.
    pub fn with_keys(keys: &[usize]) -> Open {
        let dir = tempfile::tempdir().unwrap();
        let path = std::ffi::CString::new(dir.path().join("db").to_str().unwrap()).unwrap();
        let options = EngineOptions {
            directory: path.as_ptr(),
            pool_bytes: 1 << 20,
            log_bytes: 1 << 20,
            checkpoint_seconds: 300,
            recovery_target_seconds: 0,
            longest_kept_log: 64 << 30,
            flush_log_at_commit: 0,
            lock_wait_seconds: 50,
            sort_key: Some(no_sort_key),
            sessions: null(),
            temporary_prefix: null(),
            direct_io: 0,
            unreadable_is_damage: 0,
        };
        let mut open = Open {
            engine: null_mut(),
            table: null_mut(),
            handle: null_mut(),
            session: null_mut(),
            _dir: dir,
        };
        let (engine, name) = (&mut open.engine, c"t".as_ptr());
        // SAFETY: all that the pointers point to lives until the end of the calls.
        unsafe {
            assert_eq!(peregrine_engine_open(&options, engine), OK);
            let created = with_definition(keys, |definition| {
                peregrine_table_create(*engine, name, 1, definition, 1, 0, 0)
            });
            assert_eq!(created, OK);
            assert_eq!(peregrine_session_new(*engine, 1, &mut open.session), OK);
        }
        assert_eq!(open.reopen(keys), OK);
        open
    }

    /// Closes the table and opens it again, by a definition with these keys.
    pub fn reopen(&mut self, keys: &[usize]) -> i32 {
        // SAFETY: the closed objects are not used again; all that the pointers point to lives until the end of the
        // calls.
        unsafe {
            peregrine_handle_close(self.handle);
            peregrine_table_close(self.table);
            (self.handle, self.table) = (null_mut(), null_mut());
            let (engine, table) = (self.engine, &mut self.table);
            let opened = with_definition(keys, |definition| {
                peregrine_table_open(engine, c"t".as_ptr(), 1, definition, table)
            });
            if opened == OK {
                assert_eq!(peregrine_handle_open(self.table, &mut self.handle), OK);
            }
            opened
        }
    }

    pub fn start(&self) {
        // SAFETY: the session is this thread's.
        let code = unsafe { peregrine_statement_start(self.session, 1, 1, 0, 0) };
        assert_eq!(code, OK);
    }

    pub fn use_key(&self, key: u32, lock: u32) {
        // SAFETY: the handle is this thread's.
        assert_eq!(unsafe { peregrine_use_key(self.handle, key, lock) }, OK);
    }

    pub fn set_end(&self, key: &[u8], inclusive: u32) {
        // SAFETY: the key has its one part.
        let code = unsafe { peregrine_set_end(self.handle, key.as_ptr(), 1, inclusive) };
        assert_eq!(code, OK);
    }

    /// Inserts a row.
    pub fn insert(&self, row: Record) {
        // SAFETY: a record of the table.
        let code = unsafe { peregrine_insert(self.handle, self.session, row.as_ptr(), 0) };
        assert_eq!(code, OK);
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        // SAFETY: none of them is used again.
        unsafe {
            peregrine_handle_close(self.handle);
            peregrine_session_free(self.session);
            peregrine_table_close(self.table);
            peregrine_engine_close(self.engine);
        }
    }
}
