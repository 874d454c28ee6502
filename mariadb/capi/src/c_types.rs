//! The structs and numbers of the headers in `include/`, as Rust sees them.
//!
//! The sizes are asserted on both sides, so that a change of one file alone does not compile. A test compares the place of
//! each field and each number with the headers.

#[cfg(test)]
mod tests;

use std::ffi::{c_char, c_void};

/// The result of a call: the numbers of `peregrine_code`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Code {
    /// Done.
    Ok = 0,
    /// No such row, or no further row.
    End = 1,
    /// A row with the same unique key exists.
    Duplicate = 2,
    /// A cycle of waiting transactions; roll the transaction back.
    Deadlock = 3,
    /// A lock was not granted in time.
    LockTimeout = 4,
    /// The row changed after the snapshot; roll the transaction back.
    Conflict = 5,
    /// The statement was killed.
    Interrupted = 6,
    /// No table of that name.
    NoSuchTable = 7,
    /// A table of that name exists.
    TableExists = 8,
    /// Open transactions have changed the table.
    Busy = 9,
    /// A value, key or definition that the engine does not accept.
    Invalid = 10,
    /// Beyond a limit.
    TooLarge = 11,
    /// The disk is full.
    NoSpace = 12,
    /// A system call failed.
    Io = 13,
    /// Bytes on disk are not what they must be.
    Corrupt = 14,
    /// Files of another version, or not Peregrine's.
    Format = 15,
    /// The engine has stopped.
    Stopped = 16,
    /// A bug.
    Internal = 17,
    /// The server's definition of a table differs from the engine's.
    Definition = 18,
    /// Locked, and the caller asked not to wait.
    LockNotAvailable = 19,
    /// In use or changed by another transaction, in a table with optimistic locking.
    RowChanged = 20,
    /// The table was created, copied or truncated after the transaction's snapshot.
    TableNewer = 21,
    /// The system gave no memory for a value, row or log record.
    OutOfMemory = 22,
    /// The log has reached the most that is kept for the transaction; roll it back.
    LogLimit = 23,
}

/// `peregrine_sort_key`.
pub type SortKey = unsafe extern "C" fn(u32, *const u8, usize, u32, *mut u8, usize) -> usize;

/// `peregrine_sessions`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct SessionCalls {
    /// The text of the statement that a session executes.
    pub statement: unsafe extern "C" fn(u64, *mut c_char, usize) -> usize,
    /// `peregrine_told_waits`.
    pub told_waits: unsafe extern "C" fn(u64) -> u32,
    /// A session waits for another.
    pub waits_for: unsafe extern "C" fn(u64, u64) -> i32,
    /// How a session waits.
    pub waiting: unsafe extern "C" fn(u64, *mut u32) -> i32,
}

/// `peregrine_tell`.
pub type Tell = unsafe extern "C" fn(u32, *const c_char, usize);

/// `peregrine_problem`.
pub type Problem = unsafe extern "C" fn(*mut c_void, *const c_char, usize);

/// `peregrine_check`.
pub type Check = unsafe extern "C" fn(*mut c_void) -> i32;

/// `peregrine_options`.
#[repr(C)]
pub struct EngineOptions {
    /// The directory's name, NUL-terminated.
    pub directory: *const c_char,
    /// Bytes of the buffer pool.
    pub pool_bytes: u64,
    /// Bytes of log after which a checkpoint starts.
    pub log_bytes: u64,
    /// Seconds after which a checkpoint starts.
    pub checkpoint_seconds: u64,
    /// Seconds that an open after a crash may take; 0: no target, `log_bytes` alone decides.
    pub recovery_target_seconds: u64,
    /// The most bytes of log that are kept for a running transaction.
    pub longest_kept_log: u64,
    /// 0, 1 or 2.
    pub flush_log_at_commit: u32,
    /// Seconds.
    pub lock_wait_seconds: u32,
    /// The server's collations.
    pub sort_key: Option<SortKey>,
    /// The engine's questions about the server's sessions; null: nothing is known.
    pub sessions: *const SessionCalls,
    /// The prefix of the names of temporary tables, NUL-terminated; null: there are none.
    pub temporary_prefix: *const c_char,
    /// Other than 0: pages are read without the system's page cache.
    pub direct_io: u32,
    /// Other than 0: a page whose read fails twice counts as damaged.
    pub unreadable_is_damage: u32,
}

/// The most bytes of a transaction's name.
pub const XID_BYTES: usize = 128;

/// `peregrine_xid`.
#[repr(C)]
pub struct XidImage {
    /// The coordinator's format number.
    pub format: i64,
    /// Bytes of the global part.
    pub global_length: u32,
    /// Bytes of the branch, which follows it.
    pub branch_length: u32,
    /// The global part, then the branch.
    pub bytes: [u8; XID_BYTES],
}

/// `peregrine_counters`.
#[repr(C)]
#[derive(Clone, Debug, Default)]
#[allow(missing_docs)] // the names are those of `peregrine::Status`
pub struct Counters {
    pub pages_read: u64,
    pub pages_written: u64,
    pub pages_evicted: u64,
    pub mini_page_reads: u64,
    pub pool_pages_used: u64,
    pub pool_pages_total: u64,
    pub pool_pages_dirty: u64,
    pub log_bytes: u64,
    pub log_syncs: u64,
    pub checkpoints: u64,
    pub commits: u64,
    pub rollbacks: u64,
    pub rows_read: u64,
    pub rows_inserted: u64,
    pub rows_updated: u64,
    pub rows_deleted: u64,
    pub lock_waits: u64,
    pub lock_waits_now: u64,
    pub lock_wait_us: u64,
    pub longest_lock_wait_us: u64,
    pub lock_timeouts: u64,
    pub deadlocks: u64,
    pub locked_rows: u64,
    pub undo_pages: u64,
    pub purge_backlog: u64,
    pub file_bytes: u64,
    pub file_free_bytes: u64,
    pub transaction_status_bytes: u64,
    /// Rounded up to whole seconds.
    pub recovery_seconds: u64,
}

/// `peregrine_column`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ColumnDefinition {
    /// Name, not NUL-terminated.
    pub name: *const c_char,
    /// Type in SQL, UTF-8, not NUL-terminated.
    pub type_text: *const c_char,
    /// The text that follows the type and NULL in a CREATE TABLE, in the form of the type.
    pub rest: *const c_char,
    /// Bytes of the name.
    pub name_length: u32,
    /// Bytes of the type; 0 where it is not known.
    pub type_length: u32,
    /// Bytes of the rest.
    pub rest_length: u32,
    /// One of `peregrine_column_kind`.
    pub kind: u32,
    /// Offset of the column's bytes in the record.
    pub offset: u32,
    /// Bytes; see the kind.
    pub length: u32,
    /// Bytes of the length before a variable value.
    pub length_bytes: u32,
    /// Byte of the record with the null bit.
    pub null_offset: u32,
    /// Mask of the null bit, 0 without one.
    pub null_bit: u32,
    /// 0 is memcmp.
    pub collation: u32,
    /// The pad character, big-endian.
    pub pad: u32,
    /// Its length in bytes.
    pub pad_length: u32,
}

/// `peregrine_key_part`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct KeyPartDefinition {
    /// The column's number.
    pub column: u32,
    /// 0 is the whole column.
    pub prefix: u32,
    /// Bytes of the value in a key image.
    pub key_length: u32,
    /// The most bytes of a sort key.
    pub sort_length: u32,
    /// 1 when greater values come first.
    pub descending: u32,
}

/// `peregrine_key`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct KeyDefinition {
    /// Name, not NUL-terminated.
    pub name: *const c_char,
    /// Its length in bytes.
    pub name_length: u32,
    /// Number of the key's own parts.
    pub part_count: u32,
    /// Number of parts of the clustered key that follow them in key images.
    pub extra_count: u32,
    /// 1 when no two rows may be equal.
    pub unique: u32,
    /// All these parts.
    pub parts: *const KeyPartDefinition,
}

/// `peregrine_definition`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct TableDefinition {
    /// The columns in the server's order.
    pub columns: *const ColumnDefinition,
    /// The keys in the server's order.
    pub keys: *const KeyDefinition,
    /// Number of columns.
    pub column_count: u32,
    /// Number of keys.
    pub key_count: u32,
    /// The clustered key's number, `u32::MAX` without one.
    pub primary: u32,
    /// Bytes of the record buffer.
    pub record_length: u32,
    /// A record with the bytes of each column where it is NULL.
    pub nulls: *const u8,
    /// All else that a CREATE TABLE has: texts with a NUL between them.
    pub rest: *const c_char,
    /// Its bytes; 0: not known, and the columns' `rest` is not known either.
    pub rest_length: u32,
}

/// `peregrine_table_stats`.
#[repr(C)]
#[derive(Clone, Debug, Default)]
pub struct TableStats {
    /// About how many rows there are.
    pub rows: u64,
    /// Bytes of the clustered tree and large values.
    pub data_bytes: u64,
    /// Bytes of the secondary trees.
    pub index_bytes: u64,
    /// The next automatic value.
    pub next_auto_increment: u64,
    /// Not 0: some pages can't be read, so some bytes are guessed.
    ///
    /// Set once, with the reason as the error's message.
    pub told_guessed: u64,
}

/// `peregrine_target`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Target {
    /// The record buffer.
    pub record: *mut u8,
    /// The columns wanted, a bitmap.
    pub columns: *const u64,
}

/// `peregrine_aggregate`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct AggregateRequest {
    /// One of `peregrine_aggregate_kind`.
    pub kind: u32,
    /// The column's number.
    pub column: u32,
}

/// `peregrine_test`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct TestRequest {
    /// The column's number.
    pub column: u32,
    /// One of `peregrine_operator`.
    pub operator: u32,
    /// The value of a comparison.
    pub value: *const u8,
}

/// `peregrine_row_name`: strings that are not NUL-terminated, in UTF-8.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(missing_docs)] // the names are those of `peregrine::NamedRow`
pub struct RowNameInfo {
    pub table: *const c_char,
    pub table_length: usize,
    pub index: *const c_char,
    pub index_length: usize,
    pub key: *const c_char,
    pub key_length: usize,
}

/// `peregrine_transaction_info`.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(missing_docs)] // the names are those of `peregrine::TransactionEntry`
pub struct TransactionInfo {
    pub id: u64,
    pub session: u64,
    /// 0: unknown.
    pub started_us: u64,
    /// 0: it does not wait.
    pub waits_since_us: u64,
    pub waits_for: u64,
    pub rows_changed: u64,
    pub undo_records: u64,
    pub undo_bytes: u64,
    pub rows_locked: u64,
    pub lock_waits: u64,
    /// `u64::MAX`: it has no snapshot.
    pub snapshot_age: u64,
    pub state: u32,
    pub isolation: u32,
}

/// `peregrine_lock_info`.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(missing_docs)] // the names are those of `peregrine::Lock`
pub struct LockInfo {
    pub lock: u64,
    pub transaction: u64,
    pub row: RowNameInfo,
    /// As in `peregrine_lock`.
    pub mode: u32,
    pub granted: u32,
    pub is_range: u64,
}

/// `peregrine_lock_wait_info`.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(missing_docs)] // the names are those of `peregrine::LockWait`
pub struct LockWaitInfo {
    pub lock: u64,
    pub requesting: u64,
    pub blocking: u64,
}

/// `peregrine_lists`.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(missing_docs)] // the names are those of `peregrine::Inspection`
pub struct Lists {
    pub transactions: *const TransactionInfo,
    pub transaction_count: usize,
    pub locks: *const LockInfo,
    pub lock_count: usize,
    pub waits: *const LockWaitInfo,
    pub wait_count: usize,
    /// 1: there are more locks.
    pub truncated: usize,
}

/// `peregrine_deadlock_member`.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(missing_docs)] // the names are those of `peregrine::DeadlockMember`
pub struct DeadlockMemberInfo {
    pub id: u64,
    pub session: u64,
    pub undo_records: u64,
    pub row: RowNameInfo,
    /// Null: not known.
    pub statement: *const c_char,
    pub statement_length: usize,
    pub mode: u32,
    pub reserved: u32,
}

/// `peregrine_deadlock_info`.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(missing_docs)] // the names are those of `peregrine::Deadlock`
pub struct DeadlockInfo {
    pub at_us: u64,
    pub members: *const DeadlockMemberInfo,
    pub member_count: usize,
    pub length: usize,
    pub victim: usize,
}

const _: () = {
    assert!(size_of::<EngineOptions>() == 88);
    assert!(size_of::<SessionCalls>() == 32);
    assert!(size_of::<XidImage>() == 144);
    assert!(size_of::<Counters>() == 232);
    assert!(size_of::<ColumnDefinition>() == 72);
    assert!(size_of::<KeyPartDefinition>() == 20);
    assert!(size_of::<KeyDefinition>() == 32);
    assert!(size_of::<TableDefinition>() == 56);
    assert!(size_of::<TableStats>() == 40);
    assert!(size_of::<Target>() == 16);
    assert!(size_of::<AggregateRequest>() == 8);
    assert!(size_of::<TestRequest>() == 16);
    assert!(size_of::<RowNameInfo>() == 48);
    assert!(size_of::<TransactionInfo>() == 96);
    assert!(size_of::<LockInfo>() == 80);
    assert!(size_of::<LockWaitInfo>() == 24);
    assert!(size_of::<Lists>() == 56);
    assert!(size_of::<DeadlockMemberInfo>() == 96);
    assert!(size_of::<DeadlockInfo>() == 40);
};
