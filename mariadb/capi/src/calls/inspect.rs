//! Running transactions, lock waits, and the latest deadlock, as arrays for the server.

use std::ffi::c_char;
use std::ptr::null;
use std::sync::Arc;

use peregrine::{Deadlock, Inspection, LockMode, NamedRow, TransactionState};

use crate::c_types::{
    DeadlockInfo, DeadlockMemberInfo, Lists, LockInfo, LockWaitInfo, RowNameInfo, TransactionInfo,
};
use crate::engine::{engine, SharedEngine};
use crate::failure::Failure;
use crate::guard;

/// The object behind the server's pointer: the arrays point into the inspection.
pub struct InspectionBox {
    _inspection: Arc<Inspection>,
    transactions: Vec<TransactionInfo>,
    locks: Vec<LockInfo>,
    waits: Vec<LockWaitInfo>,
}

/// Like [`InspectionBox`], for a deadlock.
pub struct DeadlockBox {
    _deadlock: Arc<Deadlock>,
    members: Vec<DeadlockMemberInfo>,
}

/// Encodes a `peregrine_transaction_state`.
pub(crate) fn state_number(state: TransactionState) -> u32 {
    match state {
        TransactionState::Running => 0,
        TransactionState::LockWait => 1,
        TransactionState::RollingBack => 2,
        TransactionState::Prepared => 3,
    }
}

pub(crate) fn mode_number(mode: LockMode) -> u32 {
    match mode {
        LockMode::Shared => 1,
        LockMode::Exclusive => 2,
    }
}

fn name_info(row: &NamedRow) -> RowNameInfo {
    RowNameInfo {
        table: row.table.as_ptr().cast::<c_char>(),
        table_length: row.table.len(),
        index: row.index.as_ptr().cast::<c_char>(),
        index_length: row.index.len(),
        key: row.key.as_ptr().cast::<c_char>(),
        key_length: row.key.len(),
    }
}

impl InspectionBox {
    fn new(inspection: Inspection) -> Self {
        let inspection = Arc::new(inspection);
        let transactions = inspection.transactions.iter().map(|t| TransactionInfo {
            id: t.id,
            session: t.session,
            started_us: t.started_us.unwrap_or(0),
            waits_since_us: t.waits_since_us.unwrap_or(0),
            waits_for: t.waits_for.unwrap_or(0),
            rows_changed: t.rows_changed,
            undo_records: t.undo_records,
            undo_bytes: t.undo_bytes,
            rows_locked: t.rows_locked,
            lock_waits: t.lock_waits,
            snapshot_age: t.snapshot_age.unwrap_or(u64::MAX),
            state: state_number(t.state),
            isolation: t.isolation as u32,
        });
        let locks = inspection.locks.iter().map(|lock| LockInfo {
            lock: lock.lock,
            transaction: lock.transaction,
            row: name_info(&lock.row),
            mode: mode_number(lock.mode),
            granted: u32::from(lock.granted),
            is_range: u64::from(lock.is_range),
        });
        let waits = inspection.waits.iter().map(|wait| LockWaitInfo {
            lock: wait.lock,
            requesting: wait.requesting,
            blocking: wait.blocking,
        });
        InspectionBox {
            transactions: transactions.collect(),
            locks: locks.collect(),
            waits: waits.collect(),
            _inspection: inspection,
        }
    }
}

/// See the header.
///
/// # Safety
/// `shared` must be an open engine, `out` and `lists` writable.
#[no_mangle]
pub unsafe extern "C" fn peregrine_inspect(
    shared: *mut SharedEngine,
    out: *mut *mut InspectionBox,
    lists: *mut Lists,
) -> i32 {
    guard::reading(|| {
        // SAFETY: by the caller's promise.
        let (engine, out, lists) = unsafe { (engine(shared)?, out.as_mut(), lists.as_mut()) };
        let (Some(out), Some(lists)) = (out, lists) else {
            return Err(Failure::argument("place for an inspection"));
        };
        engine.check()?;
        let inspection = engine.database.inspect();
        let truncated = inspection.truncated;
        let found = Box::new(InspectionBox::new(inspection));
        *lists = Lists {
            transactions: found.transactions.as_ptr(),
            transaction_count: found.transactions.len(),
            locks: found.locks.as_ptr(),
            lock_count: found.locks.len(),
            waits: found.waits.as_ptr(),
            wait_count: found.waits.len(),
            truncated: usize::from(truncated),
        };
        *out = Box::into_raw(found);
        Ok(true)
    })
}

/// See the header.
///
/// # Safety
/// `inspection` must be null or come from [`peregrine_inspect`] and not be used again.
#[no_mangle]
pub unsafe extern "C" fn peregrine_inspection_free(inspection: *mut InspectionBox) {
    if !inspection.is_null() {
        // SAFETY: from Box::into_raw by the caller's promise.
        drop(unsafe { Box::from_raw(inspection) });
    }
}

/// See the header.
///
/// # Safety
/// `shared` must be an open engine, `out` and `info` writable.
#[no_mangle]
pub unsafe extern "C" fn peregrine_latest_deadlock(
    shared: *mut SharedEngine,
    out: *mut *mut DeadlockBox,
    info: *mut DeadlockInfo,
) -> i32 {
    guard::reading(|| {
        // SAFETY: by the caller's promise.
        let (engine, out, info) = unsafe { (engine(shared)?, out.as_mut(), info.as_mut()) };
        let (Some(out), Some(info)) = (out, info) else {
            return Err(Failure::argument("place for a deadlock"));
        };
        let Some(deadlock) = engine.database.latest_deadlock() else {
            return Ok(false);
        };
        let deadlock = Arc::new(deadlock);
        let members = deadlock.members.iter().map(|(member, row)| {
            let statement = member.statement.as_deref();
            DeadlockMemberInfo {
                id: member.id,
                session: member.session,
                undo_records: member.undo_records,
                row: name_info(row),
                statement: statement.map_or(null(), |text| text.as_ptr().cast()),
                statement_length: statement.map_or(0, str::len),
                mode: mode_number(member.mode),
                reserved: 0,
            }
        });
        let found = Box::new(DeadlockBox {
            members: members.collect(),
            _deadlock: deadlock.clone(),
        });
        *info = DeadlockInfo {
            at_us: deadlock.at_us,
            members: found.members.as_ptr(),
            member_count: found.members.len(),
            length: deadlock.length,
            victim: deadlock.victim,
        };
        *out = Box::into_raw(found);
        Ok(true)
    })
}

/// See the header.
///
/// # Safety
/// `deadlock` must be null or come from [`peregrine_latest_deadlock`] and not be used again.
#[no_mangle]
pub unsafe extern "C" fn peregrine_deadlock_free(deadlock: *mut DeadlockBox) {
    if !deadlock.is_null() {
        // SAFETY: from Box::into_raw by the caller's promise.
        drop(unsafe { Box::from_raw(deadlock) });
    }
}
