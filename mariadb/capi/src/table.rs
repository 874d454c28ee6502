//! Tables: their definition, statistics and automatic values.

use std::ffi::c_char;
use std::sync::Arc;

use peregrine::ids::MAX_KEY;
use peregrine::row::ColumnType;
use peregrine::sync::RwLock;
use peregrine::{Locking, Table, TableOptions, TableSchema};

use crate::c_types::{Code, TableDefinition, TableStats};
use crate::engine::{engine, SharedEngine};
use crate::failure::{keep, Failure, Outcome};
use crate::guard;
use crate::rows::layout::Layout;
use crate::session::{session as session_of, SessionBox};

mod emptying;
#[cfg(test)]
mod tests;

/// Bytes of the length at the end of a position.
pub const POSITION_LENGTH_BYTES: usize = 2;

/// The state of a table that all its handles share.
pub struct SharedTable {
    /// The engine that has the table.
    pub engine: SharedEngine,
    /// The places of its columns in the server's buffers.
    pub layout: Layout,
    /// Bytes of a row's position.
    pub position_length: usize,
    table: RwLock<Arc<Table>>,
}

impl SharedTable {
    /// Returns the engine's table; a truncation replaces it.
    pub fn table(&self) -> Arc<Table> {
        Arc::clone(&self.table.read())
    }
}

/// The object behind the server's pointer.
pub type TableBox = Arc<SharedTable>;

/// The table behind a pointer from the server.
///
/// # Safety
/// `table` must be null or come from [`peregrine_table_open`] and not be closed.
pub unsafe fn table<'a>(table: *const TableBox) -> Outcome<&'a TableBox> {
    // SAFETY: by the caller's promise.
    unsafe { table.as_ref() }.ok_or_else(|| Failure::argument("table"))
}

/// A name from the server.
///
/// # Safety
/// `name` must be valid for `length` bytes.
unsafe fn name_of<'a>(name: *const c_char, length: usize) -> Outcome<&'a str> {
    if name.is_null() {
        return Err(Failure::argument("name of a table"));
    }
    // SAFETY: not null, valid for `length` by the caller's promise.
    let bytes = unsafe { std::slice::from_raw_parts(name.cast::<u8>(), length) };
    std::str::from_utf8(bytes)
        .map_err(|_| Failure::new(Code::Invalid, "the table's name is not UTF-8"))
}

/// Runs `entry` with an engine; a panic stops the engine.
///
/// # Safety
/// `shared` must be null or an open engine.
unsafe fn with_engine(
    shared: *mut SharedEngine,
    entry: impl FnOnce(&SharedEngine) -> Outcome<bool>,
) -> i32 {
    // SAFETY: by the caller's promise.
    match unsafe { engine(shared) } {
        Ok(engine) => guard::changing(engine, || {
            engine.check()?;
            entry(engine)
        }),
        Err(failure) => keep(failure),
    }
}

/// Decodes a `peregrine_locking`.
pub(crate) fn locking_of(number: u32) -> Outcome<Locking> {
    match number {
        0 => Ok(Locking::Pessimistic),
        1 => Ok(Locking::Optimistic),
        _ => Err(Failure::argument("locking")),
    }
}

/// The most bytes that an encoded clustered key can have.
fn key_bound(layout: &Layout, schema: &TableSchema) -> usize {
    let (Some(primary), Ok(key)) = (&schema.primary, layout.key(layout.key_of_index[0])) else {
        return 8;
    };
    let bound: usize = primary
        .parts
        .iter()
        .zip(&key.parts)
        .map(|(part, placed)| {
            let column = &schema.columns[part.column];
            let cut = |n: usize| part.prefix.map_or(n, |prefix| n.min(prefix as usize));
            let bytes = match column.ty {
                ColumnType::Int { .. } | ColumnType::Double => 8,
                ColumnType::Float => 4,
                ColumnType::Bytes { len } => cut(len as usize),
                // In the worst case every byte needs an escape.
                ColumnType::VarBytes { max } if column.collation == 0 => 2 * cut(max as usize) + 2,
                ColumnType::Large { max } if column.collation == 0 => {
                    2 * cut(usize::try_from(max).unwrap_or(MAX_KEY)) + 2
                }
                _ => placed.sort_length,
            };
            bytes + usize::from(column.nullable)
        })
        .sum();
    bound.min(MAX_KEY)
}

/// See the header.
///
/// # Safety
/// All pointers must be valid, those in the definition too.
#[no_mangle]
pub unsafe extern "C" fn peregrine_table_create(
    shared: *mut SharedEngine,
    name: *const c_char,
    name_length: usize,
    definition: *const TableDefinition,
    auto_increment: u64,
    locking: u32,
    of_one_session: u32,
) -> i32 {
    // SAFETY: by the caller's promise.
    unsafe {
        with_engine(shared, |engine| {
            let definition = definition
                .as_ref()
                .ok_or_else(|| Failure::argument("definition of a table"))?;
            let (_, schema) = Layout::read(definition)?;
            let options = TableOptions {
                locking: locking_of(locking)?,
                auto_increment,
                of_one_session: of_one_session != 0,
            };
            engine
                .database
                .create_table_with(name_of(name, name_length)?, &schema, &options)?;
            Ok(true)
        })
    }
}

/// See the header.
///
/// # Safety
/// All pointers must be valid; `session` may be null, and is of this thread.
#[no_mangle]
pub unsafe extern "C" fn peregrine_table_drop(
    shared: *mut SharedEngine,
    session: *mut SessionBox,
    name: *const c_char,
    name_length: usize,
) -> i32 {
    // SAFETY: by the caller's promise.
    unsafe {
        with_engine(shared, |engine| {
            let name = name_of(name, name_length)?;
            let user = match session.is_null() {
                true => None,
                false => session_of(session)?.open_transaction(),
            };
            match user {
                Some(transaction) => engine.database.drop_table_used_by(transaction, name)?,
                None => engine.database.drop_table(name)?,
            }
            Ok(true)
        })
    }
}

/// See the header.
///
/// # Safety
/// All pointers must be valid.
#[no_mangle]
pub unsafe extern "C" fn peregrine_table_rename(
    shared: *mut SharedEngine,
    from: *const c_char,
    from_length: usize,
    to: *const c_char,
    to_length: usize,
    as_new: u32,
) -> i32 {
    // SAFETY: by the caller's promise.
    unsafe {
        with_engine(shared, |engine| {
            let (from, to) = (name_of(from, from_length)?, name_of(to, to_length)?);
            if as_new == 0 {
                engine.database.rename_table(from, to)?;
            } else {
                engine.database.rename_table_as_new(from, to)?;
            }
            Ok(true)
        })
    }
}

/// See the header.
///
/// # Safety
/// All pointers must be valid.
#[no_mangle]
pub unsafe extern "C" fn peregrine_tables_drop(
    shared: *mut SharedEngine,
    prefix: *const c_char,
    prefix_length: usize,
) -> i32 {
    // SAFETY: by the caller's promise.
    unsafe {
        with_engine(shared, |engine| {
            let prefix = name_of(prefix, prefix_length)?;
            let mut dropped = Ok(true);
            for name in engine.database.table_names() {
                if name.starts_with(prefix) {
                    // A table that can't be dropped does not stop the others.
                    if let Err(error) = engine.database.drop_table(&name) {
                        dropped = dropped.and(Err(error.into()));
                    }
                }
            }
            dropped
        })
    }
}

fn differs(name: &str) -> Failure {
    Failure::new(
        Code::Definition,
        format!("the server's definition of table {name} differs from the engine's"),
    )
}

/// See the header.
///
/// # Safety
/// All pointers must be valid, those in the definition too.
#[no_mangle]
pub unsafe extern "C" fn peregrine_table_open(
    shared: *mut SharedEngine,
    name: *const c_char,
    name_length: usize,
    definition: *const TableDefinition,
    out: *mut *mut TableBox,
) -> i32 {
    // SAFETY: by the caller's promise.
    unsafe {
        with_engine(shared, |engine| {
            let definition = definition
                .as_ref()
                .ok_or_else(|| Failure::argument("definition of a table"))?;
            let out = out
                .as_mut()
                .ok_or_else(|| Failure::argument("place for a table"))?;
            let name = name_of(name, name_length)?;
            let (mut layout, schema) = Layout::read(definition)?;
            let position_length = key_bound(&layout, &schema) + POSITION_LENGTH_BYTES;
            let table = engine.database.table(name)?;
            if !layout.find_indexes(&table.schema(), &schema) {
                return Err(differs(name));
            }
            let shared = Arc::new(SharedTable {
                engine: Arc::clone(engine),
                layout,
                position_length,
                table: RwLock::new(table),
            });
            *out = Box::into_raw(Box::new(shared));
            Ok(true)
        })
    }
}

/// See the header.
///
/// # Safety
/// `pointer` must be null or an open table that is not used again.
#[no_mangle]
pub unsafe extern "C" fn peregrine_table_close(pointer: *mut TableBox) {
    guard::reading(|| {
        if !pointer.is_null() {
            // SAFETY: from Box::into_raw by the caller's promise.
            drop(unsafe { Box::from_raw(pointer) });
        }
        Ok(true)
    });
}

/// Runs `entry` with a table; a panic stops its engine.
///
/// # Safety
/// `pointer` must be null or an open table.
unsafe fn with_table(
    pointer: *mut TableBox,
    entry: impl FnOnce(&TableBox, &Arc<Table>) -> Outcome<bool>,
) -> i32 {
    // SAFETY: by the caller's promise.
    match unsafe { table(pointer) } {
        Ok(shared) => guard::changing(&shared.engine, || {
            shared.engine.check()?;
            entry(shared, &shared.table())
        }),
        Err(failure) => keep(failure),
    }
}

/// See the header.
///
/// # Safety
/// `pointer` must be an open table, `out` writable.
#[no_mangle]
pub unsafe extern "C" fn peregrine_table_statistics(
    pointer: *mut TableBox,
    out: *mut TableStats,
) -> i32 {
    // SAFETY: by the caller's promise.
    unsafe {
        with_table(pointer, |_, table| {
            let out = out
                .as_mut()
                .ok_or_else(|| Failure::argument("place for statistics"))?;
            // A statement must not fail because of pages that it does not read itself.
            let ((data_bytes, index_bytes), failed) = table.guess_size_bytes();
            let told_guessed = u64::from(failed.is_some());
            if let Some(error) = failed {
                keep(error.into());
            }
            *out = TableStats {
                rows: table.estimate_rows(),
                data_bytes,
                index_bytes,
                next_auto_increment: table.next_auto_increment(),
                told_guessed,
            };
            Ok(true)
        })
    }
}

/// See the header.
///
/// # Safety
/// `pointer` must be an open table, `out` writable for `count` numbers.
#[no_mangle]
pub unsafe extern "C" fn peregrine_table_rows_per_key(
    pointer: *mut TableBox,
    key: u32,
    out: *mut u64,
    count: u32,
) -> i32 {
    // SAFETY: by the caller's promise.
    unsafe {
        with_table(pointer, |shared, table| {
            if out.is_null() {
                return Err(Failure::argument("place for statistics"));
            }
            let out = std::slice::from_raw_parts_mut(out, count as usize);
            let different = table.cardinality(shared.layout.key(key)?.index)?;
            let rows = table.estimate_rows();
            for (n, out) in out.iter_mut().enumerate() {
                // Parts beyond the last, those of the clustered key behind a secondary key, make entries unique.
                *out = different
                    .get(n)
                    .map_or(1, |&d| rows.checked_div(d).unwrap_or(1).max(1));
            }
            Ok(true)
        })
    }
}

/// See the header.
///
/// # Safety
/// `pointer` must be an open table.
#[no_mangle]
pub unsafe extern "C" fn peregrine_table_analyze(pointer: *mut TableBox) -> i32 {
    // SAFETY: by the caller's promise.
    unsafe {
        with_table(pointer, |_, table| {
            table.analyze()?;
            Ok(true)
        })
    }
}

/// See the header.
///
/// # Safety
/// `pointer` must be an open table, `first` writable.
#[no_mangle]
pub unsafe extern "C" fn peregrine_table_reserve_auto_increment(
    pointer: *mut TableBox,
    count: u64,
    increment: u64,
    offset: u64,
    max: u64,
    first: *mut u64,
) -> i32 {
    // SAFETY: by the caller's promise.
    unsafe {
        with_table(pointer, |_, table| {
            let first = first
                .as_mut()
                .ok_or_else(|| Failure::argument("place for a value"))?;
            *first = table.reserve_auto_increment(count, increment, offset, max)?;
            Ok(true)
        })
    }
}

/// See the header.
///
/// # Safety
/// `pointer` must be an open table.
#[no_mangle]
pub unsafe extern "C" fn peregrine_table_return_auto_increment(
    pointer: *mut TableBox,
    next: u64,
    reserved_end: u64,
) -> i32 {
    // SAFETY: by the caller's promise.
    unsafe {
        with_table(pointer, |_, table| {
            table.return_auto_increment(next, reserved_end);
            Ok(true)
        })
    }
}

/// See the header.
///
/// # Safety
/// `pointer` must be an open table.
#[no_mangle]
pub unsafe extern "C" fn peregrine_table_raise_auto_increment(
    pointer: *mut TableBox,
    next: u64,
) -> i32 {
    // SAFETY: by the caller's promise.
    unsafe {
        with_table(pointer, |_, table| {
            table.set_auto_increment_at_least(next);
            Ok(true)
        })
    }
}

/// See the header.
///
/// # Safety
/// `pointer` must be an open table.
#[no_mangle]
pub unsafe extern "C" fn peregrine_table_set_auto_increment(
    pointer: *mut TableBox,
    next: u64,
) -> i32 {
    // SAFETY: by the caller's promise.
    unsafe {
        with_table(pointer, |shared, table| {
            let database = &shared.engine.database;
            database.set_auto_increment(&table.name(), next)?;
            Ok(true)
        })
    }
}

/// See the header.
///
/// # Safety
/// `pointer` must be an open table.
#[no_mangle]
pub unsafe extern "C" fn peregrine_table_set_locking(pointer: *mut TableBox, locking: u32) -> i32 {
    // SAFETY: by the caller's promise.
    unsafe {
        with_table(pointer, |shared, table| {
            let database = &shared.engine.database;
            database.set_locking(&table.name(), locking_of(locking)?)?;
            Ok(true)
        })
    }
}

/// See the header.
///
/// # Safety
/// `pointer` must be an open table; all pointers in the definition must be valid.
#[no_mangle]
pub unsafe extern "C" fn peregrine_table_set_description(
    pointer: *mut TableBox,
    definition: *const TableDefinition,
) -> i32 {
    // SAFETY: by the caller's promise.
    unsafe {
        with_table(pointer, |shared, table| {
            let definition = definition
                .as_ref()
                .ok_or_else(|| Failure::argument("definition of a table"))?;
            let (mut layout, schema) = Layout::read(definition)?;
            let name = table.name();
            if !layout.find_indexes(&table.schema(), &schema) {
                return Err(differs(&name));
            }
            let names = layout.names(&schema);
            shared.engine.database.set_names(&name, &names)?;
            shared.engine.database.set_user(&name, &schema.user)?;
            Ok(true)
        })
    }
}

/// See the header.
///
/// # Safety
/// `pointer` must be null or an open table.
#[no_mangle]
pub unsafe extern "C" fn peregrine_table_position_length(pointer: *const TableBox) -> u32 {
    // SAFETY: by the caller's promise.
    unsafe { pointer.as_ref() }.map_or(0, |table| table.position_length as u32)
}
