//! The structs and numbers of the headers are those of Rust: a C++ compiler checks what Rust says of them.

use std::fmt::Write;
use std::io::Write as _;
use std::mem::offset_of;
use std::process::{Command, Stdio};

use peregrine::{Comparison, Isolation, LockMode, Locking, RowLock, Seek, TransactionState};

use super::*;
use crate::calls::inspect::{mode_number, state_number};
use crate::calls::rows::reading;
use crate::handle::aggregating::{operator, Operator};
use crate::handle::searching::seek;
use crate::rows::layout::{kind, Kind};
use crate::server_sessions::{TOLD_FOR_HOLDERS, TOLD_IN_QUEUE};
use crate::session::isolation;
use crate::table::locking_of;
use crate::told::{ERROR, NOTE, WARNING};

/// Asserts in C++ that the header has a number.
fn number(checks: &mut String, name: &str, value: u32) {
    writeln!(checks, "static_assert({name} == {value}, \"{name}\");").unwrap();
}

/// Asserts in C++ where the fields of structs are, and how large they are.
macro_rules! structs {
    ($checks:expr; $($c:ident = $rust:ident: $($field:ident $(as $named:ident)?),+;)+) => {$(
        writeln!($checks, "static_assert(sizeof({0}) == {1}, \"{0}\");", stringify!($c), size_of::<$rust>()).unwrap();
        $(
            #[allow(unused_mut, unused_assignments)]
            let mut name = stringify!($field);
            $(name = stringify!($named);)?
            let at = offset_of!($rust, $field);
            writeln!($checks, "static_assert(offsetof({0}, {name}) == {at}, \"{0}.{name}\");", stringify!($c)).unwrap();
        )+
    )+};
}

/// Returns whether the headers compile with these lines behind them; the compiler tells its errors to `told`.
fn compiles(checks: &str, told: Stdio) -> bool {
    let compiler = std::env::var("CXX").unwrap_or_else(|_| "c++".into());
    let mut child = Command::new(compiler)
        .args(["-std=c++17", "-fsyntax-only", "-x", "c++", "-I"])
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/include"))
        .arg("-")
        .stdin(Stdio::piped())
        .stderr(told)
        .spawn()
        .expect("a C++ compiler, which the plug-in needs, too");
    let headers = ["", "_aggregate", "_inspect", "_prepared", "_told"]
        .map(|name| format!("#include \"peregrine{name}.h\"\n"))
        .concat();
    let source = format!("#include <cstddef>\n{headers}{checks}");
    let mut input = child.stdin.take().expect("its input");
    input.write_all(source.as_bytes()).expect("written");
    drop(input);
    child.wait().expect("ended").success()
}

#[test]
fn structs_are_as_in_the_headers() {
    let mut checks = String::new();
    structs! { checks;
        peregrine_sessions = SessionCalls: statement, told_waits, waits_for, waiting;
        peregrine_options = EngineOptions: directory, pool_bytes, log_bytes, checkpoint_seconds, recovery_target_seconds, longest_kept_log, flush_log_at_commit, lock_wait_seconds, sort_key, sessions, temporary_prefix, direct_io, unreadable_is_damage;
        peregrine_xid = XidImage: format, global_length, branch_length, bytes;
        peregrine_counters = Counters: pages_read, pages_written, pages_evicted, mini_page_reads, pool_pages_used, pool_pages_total, pool_pages_dirty, log_bytes, log_syncs, checkpoints, commits, rollbacks, rows_read, rows_inserted, rows_updated, rows_deleted, lock_waits, lock_waits_now, lock_wait_us, longest_lock_wait_us, lock_timeouts, deadlocks, locked_rows, undo_pages, purge_backlog, file_bytes, file_free_bytes, transaction_status_bytes, recovery_seconds;
        peregrine_column = ColumnDefinition: name, type_text as type, rest, name_length, type_length, rest_length, kind, offset, length, length_bytes, null_offset, null_bit, collation, pad, pad_length;
        peregrine_key_part = KeyPartDefinition: column, prefix, key_length, sort_length, descending;
        peregrine_key = KeyDefinition: name, name_length, part_count, extra_count, unique, parts;
        peregrine_definition = TableDefinition: columns, keys, column_count, key_count, primary, record_length, nulls, rest, rest_length;
        peregrine_table_stats = TableStats: rows, data_bytes, index_bytes, next_auto_increment, told_guessed;
        peregrine_target = Target: record, columns;
        peregrine_aggregate = AggregateRequest: kind, column;
        peregrine_test = TestRequest: column, operator as op, value;
        peregrine_row_name = RowNameInfo: table, table_length, index, index_length, key, key_length;
        peregrine_transaction_info = TransactionInfo: id, session, started_us, waits_since_us, waits_for, rows_changed, undo_records, undo_bytes, rows_locked, lock_waits, snapshot_age, state, isolation;
        peregrine_lock_info = LockInfo: lock, transaction, row, mode, granted, is_range;
        peregrine_lock_wait_info = LockWaitInfo: lock, requesting, blocking;
        peregrine_lists = Lists: transactions, transaction_count, locks, lock_count, waits, wait_count, truncated;
        peregrine_deadlock_member = DeadlockMemberInfo: id, session, undo_records, row, statement, statement_length, mode, reserved;
        peregrine_deadlock_info = DeadlockInfo: at_us, members, member_count, length, victim;
    }
    assert!(compiles(&checks, Stdio::inherit()), "{checks}");
    let wrong = "static_assert(offsetof(peregrine_target, columns) == 0, \"a wrong place\");\n";
    assert!(!compiles(wrong, Stdio::null()));
}

#[test]
fn numbers_are_as_in_the_headers() {
    let mut checks = String::new();
    for (name, code) in [
        ("OK", Code::Ok),
        ("END", Code::End),
        ("DUPLICATE", Code::Duplicate),
        ("DEADLOCK", Code::Deadlock),
        ("LOCK_TIMEOUT", Code::LockTimeout),
        ("CONFLICT", Code::Conflict),
        ("INTERRUPTED", Code::Interrupted),
        ("NO_SUCH_TABLE", Code::NoSuchTable),
        ("TABLE_EXISTS", Code::TableExists),
        ("BUSY", Code::Busy),
        ("INVALID", Code::Invalid),
        ("TOO_LARGE", Code::TooLarge),
        ("NO_SPACE", Code::NoSpace),
        ("IO", Code::Io),
        ("CORRUPT", Code::Corrupt),
        ("FORMAT", Code::Format),
        ("STOPPED", Code::Stopped),
        ("INTERNAL", Code::Internal),
        ("DEFINITION", Code::Definition),
        ("LOCK_NOT_AVAILABLE", Code::LockNotAvailable),
        ("ROW_CHANGED", Code::RowChanged),
        ("TABLE_NEWER", Code::TableNewer),
        ("OUT_OF_MEMORY", Code::OutOfMemory),
        ("LOG_LIMIT", Code::LogLimit),
    ] {
        number(&mut checks, &format!("PEREGRINE_{name}"), code as u32);
    }
    let seeks = [
        ("EXACT", Seek::Exact),
        ("AT_OR_AFTER", Seek::AtOrAfter),
        ("AFTER", Seek::After),
        ("AT_OR_BEFORE", Seek::AtOrBefore),
        ("BEFORE", Seek::Before),
        ("FIRST", Seek::First),
        ("LAST", Seek::Last),
        ("EXACT_LAST", Seek::ExactLast),
    ];
    decoded(&mut checks, &seeks, |number| seek(number).ok());
    let kinds = [
        ("SIGNED", Kind::Signed),
        ("UNSIGNED", Kind::Unsigned),
        ("FLOAT", Kind::Float),
        ("DOUBLE", Kind::Double),
        ("FIXED", Kind::Fixed),
        ("PADDED", Kind::Padded),
        ("VARIABLE", Kind::Variable),
        ("BLOB", Kind::Blob),
        ("ABSENT", Kind::Absent),
    ];
    decoded(&mut checks, &kinds, |number| kind(number).ok());
    let levels = [
        ("READ_COMMITTED", Isolation::ReadCommitted),
        ("REPEATABLE_READ", Isolation::RepeatableRead),
        ("SERIALIZABLE", Isolation::Serializable),
    ];
    decoded(&mut checks, &levels, |number| isolation(number).ok());
    // A list of transactions has it as its number.
    assert_eq!(levels.map(|(_, level)| level as u32), [0, 1, 2]);
    let lockings = [
        ("PESSIMISTIC", Locking::Pessimistic),
        ("OPTIMISTIC", Locking::Optimistic),
    ];
    decoded(&mut checks, &lockings, |number| locking_of(number).ok());
    let tests = [
        ("TEST_EQUAL", Operator::Compare(Comparison::Equal)),
        ("TEST_NOT_EQUAL", Operator::Compare(Comparison::NotEqual)),
        ("TEST_LESS", Operator::Compare(Comparison::Less)),
        (
            "TEST_LESS_OR_EQUAL",
            Operator::Compare(Comparison::LessOrEqual),
        ),
        ("TEST_GREATER", Operator::Compare(Comparison::Greater)),
        (
            "TEST_GREATER_OR_EQUAL",
            Operator::Compare(Comparison::GreaterOrEqual),
        ),
        ("TEST_IS_NULL", Operator::IsNull),
        ("TEST_IS_NOT_NULL", Operator::IsNotNull),
    ];
    decoded(&mut checks, &tests, |number| operator(number).ok());
    let locks = [
        ("LOCK_NONE", RowLock::None),
        ("LOCK_SHARED", RowLock::Shared),
        ("LOCK_EXCLUSIVE", RowLock::Exclusive),
    ];
    decoded(&mut checks, &locks, |number| {
        reading(number).ok().map(|reading| reading.lock)
    });
    let flags = |number: u32| {
        reading(number)
            .map(|reading| (reading.skip_locked, reading.newest))
            .ok()
    };
    assert_eq!(
        (flags(4), flags(8)),
        (Some((true, false)), Some((false, true)))
    );
    for (name, value) in [
        ("SKIP_LOCKED", 4),
        ("NEWEST", 8),
        ("LOCK_SHARED", mode_number(LockMode::Shared)),
        ("LOCK_EXCLUSIVE", mode_number(LockMode::Exclusive)),
        ("RUNNING", state_number(TransactionState::Running)),
        ("LOCK_WAIT", state_number(TransactionState::LockWait)),
        ("ROLLING_BACK", state_number(TransactionState::RollingBack)),
        ("PREPARED", state_number(TransactionState::Prepared)),
        ("MESSAGE_ERROR", ERROR),
        ("MESSAGE_WARNING", WARNING),
        ("MESSAGE_NOTE", NOTE),
        ("TOLD_FOR_HOLDERS", TOLD_FOR_HOLDERS),
        ("TOLD_IN_QUEUE", TOLD_IN_QUEUE),
        ("AGGREGATE_ROWS", 0),
        ("AGGREGATE_COUNT", 1),
        ("AGGREGATE_SUM", 2),
        ("AGGREGATE_MIN", 3),
        ("AGGREGATE_MAX", 4),
    ] {
        number(&mut checks, &format!("PEREGRINE_{name}"), value);
    }
    assert!(compiles(&checks, Stdio::inherit()), "{checks}");
    let wrong = "static_assert(PEREGRINE_AFTER == 3, \"a wrong number\");\n";
    assert!(!compiles(wrong, Stdio::null()));
}

/// Each name's number is its place in the list, which decodes to its value; the next number decodes to nothing.
fn decoded<T: PartialEq + std::fmt::Debug>(
    checks: &mut String,
    names: &[(&str, T)],
    decode: impl Fn(u32) -> Option<T>,
) {
    for (value, (name, meant)) in (0..).zip(names) {
        assert_eq!(decode(value).as_ref(), Some(meant), "{name}");
        number(checks, &format!("PEREGRINE_{name}"), value);
    }
    assert_eq!(decode(names.len() as u32), None);
}
