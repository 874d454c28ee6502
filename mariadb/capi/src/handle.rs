//! Handles: the rows of one table, read and changed by one thread at a time.

pub(crate) mod aggregating;
mod buffers;
mod changing;
mod condition;
mod estimate;
mod multi_get;
mod positions;
pub(crate) mod searching;

use std::ffi::c_void;
use std::sync::Arc;

use peregrine::{knobs, Cursor, MultiGet, RowLock, Table};

use crate::c_types::{Check, Target};
use crate::failure::Outcome;
use crate::handle::condition::Condition;
use crate::rows::layout::Layout;
use crate::rows::record::Projection;
use crate::table::SharedTable;
use aggregating::{Answer, Groups, Test};

/// How rows are locked when they are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The lock.
    pub lock: RowLock,
    /// Skips rows that others have locked.
    pub skip_locked: bool,
    /// Reads the newest rows, whatever the snapshot is: [`Cursor::read_newest`].
    pub newest: bool,
}

/// The properties that a cursor was created for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Purpose {
    index: usize,
    reading: Reading,
    index_only: bool,
    /// Number of the cursor's condition.
    condition: u64,
}

/// The cursor that "the row last read" refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Current {
    None,
    Scan,
    Position,
}

/// The next step of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// To the next row.
    Next,
    /// To the previous row.
    Previous,
    /// To the next row if it starts with the key of the last search.
    NextSame,
}

/// A handler's view of a table.
pub struct Handle {
    /// The state that all handles of the table share.
    pub shared: Arc<SharedTable>,
    table: Arc<Table>,
    /// The server's key in use; `u32::MAX` for the table's own order.
    key: u32,
    reading: Reading,
    /// Whether scans don't wait for rows that others have locked: [`Cursor::set_semi_consistent`].
    semi_consistent: bool,
    condition: Option<Condition>,
    conditions: u64,
    /// The cursor in use, and the one used before: statements often alternate between two.
    cursor: Option<(Purpose, Cursor)>,
    spare: Option<(Purpose, Cursor)>,
    /// The cursor for reads by position, which must not move a scan.
    positioned: Option<(Purpose, Cursor)>,
    current: Current,
    scan_projection: Projection,
    position_projection: Projection,
    /// The rows of the last keys that were read together.
    together: MultiGet,
    together_projection: Projection,
    search_key: Vec<u8>,
    end_key: Vec<u8>,
    /// The end of the next search: `Some(inclusive)`.
    next_end: Option<bool>,
    cursor_has_end: bool,
    /// The session's generation at the last search of the scan.
    generation: u64,
    /// The key of the row that is being changed.
    row_key: Vec<u8>,
    /// Large values of the row last read, by the engine's column.
    memory: Vec<Vec<u8>>,
    /// Tests that the rows of the next aggregates must pass.
    tests: Vec<Test>,
    /// The server's column by which the next aggregates group rows.
    group: Option<usize>,
    /// The results of the last aggregates; for grouped rows, those of the current group.
    answers: Vec<Answer>,
    /// The groups that follow.
    groups: Option<Groups>,
    rows_read: u64,
}

impl Handle {
    /// Creates a handle of a table.
    pub fn new(shared: Arc<SharedTable>) -> Self {
        let table = shared.table();
        Handle {
            together: MultiGet::new(&table),
            together_projection: Projection::default(),
            table,
            shared,
            key: u32::MAX,
            reading: Reading {
                lock: RowLock::None,
                skip_locked: false,
                newest: false,
            },
            semi_consistent: false,
            condition: None,
            conditions: 0,
            cursor: None,
            spare: None,
            positioned: None,
            current: Current::None,
            scan_projection: Projection::default(),
            position_projection: Projection::default(),
            search_key: Vec::new(),
            end_key: Vec::new(),
            next_end: None,
            cursor_has_end: false,
            generation: 0,
            row_key: Vec::new(),
            memory: Vec::new(),
            tests: Vec::new(),
            group: None,
            answers: Vec::new(),
            groups: None,
            rows_read: 0,
        }
    }

    fn layout(&self) -> &Layout {
        &self.shared.layout
    }

    /// Uses a key of the server for the searches that follow.
    pub fn use_key(&mut self, key: u32, reading: Reading) -> Outcome {
        if key != u32::MAX {
            self.layout().key(key)?;
        }
        self.key = key;
        self.reading = reading;
        self.next_end = None;
        self.tests.clear();
        self.group = None;
        self.current = Current::None;
        Ok(())
    }

    /// Returns whether the entries of a key of the server give back the values of all its columns and of those of the
    /// clustered key.
    pub fn key_gives_back(&self, key: u32) -> Outcome<bool> {
        let layout = self.layout();
        let key = layout.key(key)?;
        let clustered = layout.keys.iter().find(|key| key.index == 0);
        let mut parts = key
            .parts
            .iter()
            .chain(clustered.into_iter().flat_map(|key| &key.parts));
        Ok(parts.all(|part| {
            layout.columns[part.column]
                .stored_as
                .is_some_and(|stored| self.table.index_covers(key.index, stored))
        }))
    }

    /// Uses a condition of the server for the searches that follow.
    ///
    /// # Safety
    /// As [`Condition::filter`].
    pub unsafe fn set_condition(
        &mut self,
        check: Option<Check>,
        context: *mut c_void,
        target: Target,
    ) {
        self.conditions += 1;
        let number = self.conditions;
        self.condition = check.map(|check| Condition::new(check, context, target, number));
    }

    /// Forgets the position, releases memory, and counts the rows read.
    pub fn reset(&mut self) {
        self.current = Current::None;
        self.set_semi_consistent(false);
        self.next_end = None;
        self.condition = None;
        self.tests.clear();
        self.group = None;
        self.answers.clear();
        self.groups = None;
        self.shared
            .engine
            .count_rows_read(std::mem::take(&mut self.rows_read));
        for buffer in &mut self.memory {
            if buffer.capacity() > knobs::kept_value_memory() {
                *buffer = Vec::new();
            }
        }
    }
}
