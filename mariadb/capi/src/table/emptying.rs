//! Truncation of tables.

use std::ffi::c_char;

use peregrine::{Database, Table};

use super::{name_of, with_engine, with_table, TableBox};
use crate::engine::SharedEngine;
use crate::failure::Outcome;

/// The server's separator between the name of a table and that of a partition.
const PARTITION: &str = "#P#";

/// See the header.
///
/// # Safety
/// `pointer` must be an open table.
#[no_mangle]
pub unsafe extern "C" fn peregrine_table_truncate(pointer: *mut TableBox) -> i32 {
    // SAFETY: by the caller's promise.
    unsafe {
        with_table(pointer, |shared, table| {
            let name = table.name();
            shared.engine.database.truncate_table(&name)?;
            let table = shared.engine.database.table(&name)?;
            *shared.table.write() = table;
            Ok(true)
        })
    }
}

/// See the header.
///
/// # Safety
/// All pointers must be valid.
#[no_mangle]
pub unsafe extern "C" fn peregrine_table_truncate_damaged(
    shared: *mut SharedEngine,
    name: *const c_char,
    name_length: usize,
) -> i32 {
    // SAFETY: by the caller's promise.
    unsafe {
        with_engine(shared, |engine| {
            let name = name_of(name, name_length)?;
            all_decided(&engine.database, name)?;
            engine.database.truncate_table(name)?;
            Ok(true)
        })
    }
}

/// See the header.
///
/// # Safety
/// `pointer` must be an open table.
#[no_mangle]
pub unsafe extern "C" fn peregrine_table_undecided(pointer: *mut TableBox) -> i32 {
    // SAFETY: by the caller's promise.
    unsafe {
        with_table(pointer, |shared, table| {
            decided(table)?;
            all_decided(&shared.engine.database, &table.name())
        })
    }
}

/// Fails when a prepared transaction has used any partition of the table that this is a partition of.
fn all_decided(database: &Database, name: &str) -> Outcome<bool> {
    let Some((whole, _)) = name.split_once(PARTITION) else {
        return Ok(true);
    };
    let partitions = format!("{whole}{PARTITION}");
    for name in database.table_names() {
        // A damaged partition, which can't be opened, must not stop the others.
        if let (true, Ok(table)) = (name.starts_with(&partitions), database.table(&name)) {
            decided(&table)?;
        }
    }
    Ok(true)
}

/// Fails when a prepared transaction has used the table.
fn decided(table: &Table) -> Outcome<bool> {
    match table.has_prepared() {
        true => Err(peregrine::Error::Busy(table.name()).into()),
        false => Ok(true),
    }
}
