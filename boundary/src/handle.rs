//! Handles: the rows of one table, read and changed by one thread at a time.

use std::ffi::c_void;
use std::sync::Arc;

use peregrine::{Cursor, CursorOptions, RowLock, RowView, Seek, Table, Transaction, Value};

use crate::c_types::{Check, Code, Target};
use crate::condition::Condition;
use crate::failure::{Failure, Outcome};
use crate::key_image;
use crate::layout::Layout;
use crate::record::{self, has, Projection, Values};
use crate::session::Session;
use crate::table::{SharedTable, POSITION_LENGTH_BYTES};

/// How rows are locked when they are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The lock.
    pub lock: RowLock,
    /// Rows that others have locked are passed over.
    pub skip_locked: bool,
}

/// What a cursor was made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Purpose {
    index: usize,
    reading: Reading,
    index_only: bool,
    /// The number of the condition that the cursor has.
    condition: u64,
}

/// Which row "the row last read" is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Current {
    None,
    Scan,
    Position,
}

/// How a scan goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// To the next row.
    Next,
    /// To the previous row.
    Previous,
    /// To the next row if it starts with the key of the last search.
    NextSame,
}

/// Memory for large values above this many bytes is given back at the end of a statement.
const KEPT_MEMORY: usize = 64 << 10;

/// One handler's view of a table.
pub struct Handle {
    /// What all handles of the table share.
    pub shared: Arc<SharedTable>,
    table: Arc<Table>,
    /// The server's key in use, `u32::MAX` for the table's own order.
    key: u32,
    reading: Reading,
    condition: Option<Condition>,
    conditions: u64,
    /// The cursor in use, and the one used before it: statements often take turns.
    cursor: Option<(Purpose, Cursor)>,
    spare: Option<(Purpose, Cursor)>,
    /// The cursor for reading by position, which must not move a scan.
    positioned: Option<(Purpose, Cursor)>,
    current: Current,
    scan_projection: Projection,
    position_projection: Projection,
    search_key: Vec<u8>,
    end_key: Vec<u8>,
    /// The end of the next search: `Some(inclusive)`.
    next_end: Option<bool>,
    cursor_has_end: bool,
    /// The session's generation at the scan's last search.
    generation: u64,
    /// The key of the row that is being changed.
    row_key: Vec<u8>,
    /// Large values of the row last read, by the engine's column.
    memory: Vec<Vec<u8>>,
    rows_read: u64,
}

impl Handle {
    /// A handle of a table.
    pub fn new(shared: Arc<SharedTable>) -> Self {
        Handle {
            table: shared.table(),
            shared,
            key: u32::MAX,
            reading: Reading {
                lock: RowLock::None,
                skip_locked: false,
            },
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
            rows_read: 0,
        }
    }

    fn layout(&self) -> &Layout {
        &self.shared.layout
    }

    /// Uses a key of the server's for the searches that follow.
    pub fn use_key(&mut self, key: u32, reading: Reading) -> Outcome {
        if key != u32::MAX {
            self.layout().key(key)?;
        }
        self.key = key;
        self.reading = reading;
        self.next_end = None;
        self.current = Current::None;
        Ok(())
    }

    /// Uses a condition of the server's for the searches that follow.
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

    /// Encodes the parts of a key image that `map` has; none for a null image.
    ///
    /// # Safety
    /// `image` must be null or valid for these parts.
    unsafe fn encode(
        table: &Table,
        layout: &Layout,
        key: u32,
        image: *const u8,
        map: u64,
        out: &mut Vec<u8>,
    ) -> Outcome {
        out.clear();
        if key == u32::MAX || map == 0 {
            return Ok(());
        }
        let key = layout.key(key)?;
        let mut values = Values::new();
        // SAFETY: by the caller's promise.
        unsafe { key_image::values(layout, key, image, map, &mut values)? };
        let own = values.len().min(key.own);
        table.encode_key_into(key.index, &values[..own], out)?;
        if values.len() > key.own {
            // The engine's keys go on with the whole clustered key, the server's images with
            // those of its columns that the key lacks.
            let clustered: Values<'_> = key
                .clustered
                .iter()
                .map_while(|&part| values.get(part).copied())
                .collect();
            let mut rest = Vec::new();
            table.encode_key_into(0, &clustered, &mut rest)?;
            out.extend_from_slice(&rest);
        }
        Ok(())
    }

    /// Ends the next search's scan; a null image takes that back.
    ///
    /// # Safety
    /// `image` must be null or valid for the parts of `map`.
    pub unsafe fn set_end(&mut self, image: *const u8, map: u64, inclusive: bool) -> Outcome {
        self.next_end = None;
        if !image.is_null() {
            let layout = &self.shared.layout;
            // SAFETY: by the caller's promise.
            unsafe {
                Self::encode(&self.table, layout, self.key, image, map, &mut self.end_key)?;
            }
            self.next_end = Some(inclusive);
        }
        Ok(())
    }

    /// Makes the cursor ready for a search that reads `wanted`.
    fn prepare_cursor(&mut self, wanted: &[u64]) -> Outcome {
        let layout = &self.shared.layout;
        let index = match self.key {
            u32::MAX => 0,
            key => layout.key(key)?.index,
        };
        let index_only = index != 0
            && self.reading.lock == RowLock::None
            && self.condition.is_none()
            && (self.scan_projection.fits(wanted, Some(index))
                || layout
                    .stored
                    .iter()
                    .enumerate()
                    .all(|(s, &c)| !has(wanted, c) || self.table.index_covers(index, s)));
        let condition = self
            .condition
            .as_ref()
            .map_or(0, |condition| condition.number);
        let purpose = Purpose {
            index,
            reading: self.reading,
            index_only,
            condition,
        };
        let same = |cursor: &Option<(Purpose, Cursor)>| {
            cursor
                .as_ref()
                .is_some_and(|(p, _)| Purpose { condition, ..*p } == purpose)
        };
        if !same(&self.cursor) {
            std::mem::swap(&mut self.cursor, &mut self.spare);
            if !same(&self.cursor) {
                let options = CursorOptions {
                    lock: self.reading.lock,
                    skip_locked: self.reading.skip_locked,
                    index_only,
                };
                let cursor = Cursor::new(&self.table, index, options);
                self.cursor = Some((
                    Purpose {
                        condition: 0,
                        ..purpose
                    },
                    cursor,
                ));
            }
            self.cursor_has_end = true;
        }
        if let Some((has, cursor)) = &mut self.cursor {
            if has.condition != condition {
                has.condition = condition;
                // SAFETY: by the promise to `set_condition`.
                cursor.set_filter(
                    self.condition
                        .as_ref()
                        .map(|c| unsafe { c.filter(&self.shared, index) }),
                );
            }
        }
        if let Some((_, cursor)) = &mut self.cursor {
            match self.next_end.take() {
                Some(inclusive) => {
                    cursor.set_end(&self.end_key, inclusive);
                    self.cursor_has_end = true;
                }
                None if self.cursor_has_end => {
                    cursor.clear_end();
                    self.cursor_has_end = false;
                }
                None => {}
            }
        }
        Ok(())
    }

    /// Searches in the key in use; false: no such row.
    ///
    /// # Safety
    /// `image` must be null or valid for the parts of `map`; `target` must fit the table.
    pub unsafe fn search(
        &mut self,
        session: &mut Session,
        image: *const u8,
        map: u64,
        to: u32,
        target: Target,
    ) -> Outcome<bool> {
        let (seek, last_equal) = match to {
            0 => (Seek::Exact, false),
            1 => (Seek::AtOrAfter, false),
            2 => (Seek::After, false),
            3 => (Seek::AtOrBefore, false),
            4 => (Seek::Before, false),
            5 => (Seek::First, false),
            6 => (Seek::Last, false),
            7 => (Seek::AtOrBefore, true),
            _ => return Err(Failure::argument("kind of a search")),
        };
        // SAFETY: by the caller's promise.
        let (wanted, record) = unsafe { self.shared.buffers(target)? };
        self.current = Current::None;
        self.prepare_cursor(wanted)?;
        self.generation = session.generation();
        let transaction = session.transaction()?;
        let Some((_, cursor)) = &mut self.cursor else {
            return Err(Failure::argument("no key in use"));
        };
        let found = if matches!(seek, Seek::First | Seek::Last) {
            cursor.seek(transaction, &[], seek)?
        } else {
            // SAFETY: by the caller's promise.
            unsafe {
                Self::encode(
                    &self.table,
                    &self.shared.layout,
                    self.key,
                    image,
                    map,
                    &mut self.search_key,
                )?;
            }
            cursor.seek(transaction, &self.search_key, seek)?
                && (!last_equal || cursor.key().starts_with(&self.search_key))
        };
        self.take(transaction, found, wanted, record)
    }

    /// Moves the scan and reads; false: at the end.
    ///
    /// # Safety
    /// `target` must fit the table.
    #[inline]
    pub unsafe fn step(
        &mut self,
        session: &mut Session,
        target: Target,
        step: Step,
    ) -> Outcome<bool> {
        // SAFETY: by the caller's promise.
        let (wanted, record) = unsafe { self.shared.buffers(target)? };
        let Some((_, cursor)) = &mut self.cursor else {
            return Err(Failure::argument("a scan that has not begun"));
        };
        let generation = session.generation();
        let transaction = session.transaction()?;
        let found = if self.generation == generation {
            match step {
                Step::Next => cursor.next(transaction)?,
                Step::Previous => cursor.prev(transaction)?,
                Step::NextSame => cursor.next_same_prefix(transaction)?,
            }
        } else {
            // The scan was begun in a transaction that has ended: the statement HANDLER does so.
            self.generation = generation;
            let key = cursor.key().to_vec();
            match step {
                Step::Previous => cursor.seek(transaction, &key, Seek::Before)?,
                Step::Next => cursor.seek(transaction, &key, Seek::After)?,
                Step::NextSame => {
                    cursor.seek(transaction, &key, Seek::After)?
                        && cursor.key().starts_with(&self.search_key)
                }
            }
        };
        self.take(transaction, found, wanted, record)
    }

    /// Reads the row that the scan's cursor stands on.
    #[inline]
    fn take(
        &mut self,
        transaction: &mut Transaction,
        found: bool,
        wanted: &[u64],
        record: &mut [u8],
    ) -> Outcome<bool> {
        if !found {
            self.current = Current::None;
            return Ok(false);
        }
        self.current = Current::Scan;
        self.rows_read += 1;
        let layout = &self.shared.layout;
        let Some((purpose, cursor)) = &mut self.cursor else {
            return Ok(false);
        };
        let index = purpose.index_only.then_some(purpose.index);
        if !self.scan_projection.fits(wanted, index) {
            let table = &self.table;
            cursor.set_columns(None);
            self.scan_projection.prepare(
                layout,
                wanted,
                index,
                |stored| index.is_none_or(|index| table.index_covers(index, stored)),
                |stored| table.number_place(index.unwrap_or(0), stored),
            );
            let covered =
                layout.stored.iter().enumerate().all(|(s, &c)| {
                    !has(wanted, c) || index.is_none_or(|i| table.index_covers(i, s))
                });
            if covered {
                cursor.set_columns(Some(&self.scan_projection.stored()));
            } else {
                // The server wants more than when the scan began: this row comes from the table.
                let projection = &mut self.position_projection;
                projection.prepare(layout, wanted, None, |_| true, |_| None);
                let memory = &mut self.memory;
                let read = transaction.get(&self.table, cursor.clustered_key(), |row| {
                    projection.write(layout, row, record, memory, true)
                })?;
                self.scan_projection = Projection::default();
                return match read {
                    Some(written) => written.map(|()| true),
                    None => Err(Failure::new(
                        Code::Internal,
                        "an index entry without its row",
                    )),
                };
            }
        }
        self.scan_projection.write_numbers(cursor, record)?;
        if !self.scan_projection.is_numbers() {
            let memory = &mut self.memory;
            self.scan_projection
                .write(layout, cursor.row()?, record, memory, false)?;
        }
        Ok(true)
    }

    /// The clustered key of the row last read.
    fn current_key(&self) -> Outcome<&[u8]> {
        let cursor = match self.current {
            Current::Scan => &self.cursor,
            Current::Position => &self.positioned,
            Current::None => &None,
        };
        match cursor {
            Some((_, cursor)) => Ok(cursor.clustered_key()),
            None => Err(Failure::argument("no row has been read")),
        }
    }

    /// Writes the position of the row last read.
    ///
    /// # Safety
    /// `position` must be writable for the table's position length.
    pub unsafe fn position(&self, position: *mut u8) -> Outcome {
        // SAFETY: by the caller's promise.
        unsafe { self.write_position(self.current_key()?, position) }
    }

    /// Writes the position of the row with a clustered key: the key, zeros, the key's length.
    /// Keys end themselves, so positions order as keys do.
    ///
    /// # Safety
    /// As [`Handle::position`].
    pub unsafe fn write_position(&self, key: &[u8], position: *mut u8) -> Outcome {
        let length = self.shared.position_length;
        if position.is_null() || key.len() + POSITION_LENGTH_BYTES > length {
            return Err(Failure::argument("place for a position"));
        }
        // SAFETY: not null, writable for `length` by the caller's promise.
        let position = unsafe { std::slice::from_raw_parts_mut(position, length) };
        position.fill(0);
        position[..key.len()].copy_from_slice(key);
        let end = length - POSITION_LENGTH_BYTES;
        position[end..].copy_from_slice(&(key.len() as u16).to_be_bytes());
        Ok(())
    }

    /// Reads the row at a position; false: it is gone.
    ///
    /// # Safety
    /// `position` must be valid for the table's position length; `target` must fit the table.
    pub unsafe fn read_position(
        &mut self,
        transaction: &mut Transaction,
        position: *const u8,
        reading: Reading,
        target: Target,
    ) -> Outcome<bool> {
        let length = self.shared.position_length;
        if position.is_null() {
            return Err(Failure::argument("position"));
        }
        // SAFETY: not null, valid for `length` by the caller's promise.
        let position = unsafe { std::slice::from_raw_parts(position, length) };
        let (key, tail) = position.split_at(length - POSITION_LENGTH_BYTES);
        let key = key
            .get(..usize::from(u16::from_be_bytes([tail[0], tail[1]])))
            .ok_or_else(|| Failure::argument("position"))?;
        // SAFETY: by the caller's promise.
        let (wanted, record) = unsafe { self.shared.buffers(target)? };
        self.current = Current::None;
        let purpose = Purpose {
            index: 0,
            reading,
            index_only: false,
            condition: 0,
        };
        if self.positioned.as_ref().is_none_or(|(p, _)| *p != purpose) {
            let options = CursorOptions {
                lock: reading.lock,
                skip_locked: reading.skip_locked,
                index_only: false,
            };
            self.positioned = Some((purpose, Cursor::new(&self.table, 0, options)));
        }
        let Some((_, cursor)) = &mut self.positioned else {
            return Ok(false);
        };
        if !cursor.seek(transaction, key, Seek::Exact)? {
            return Ok(false);
        }
        self.current = Current::Position;
        self.rows_read += 1;
        let layout = &self.shared.layout;
        if !self.position_projection.fits(wanted, None) {
            self.position_projection
                .prepare(layout, wanted, None, |_| true, |_| None);
        }
        let memory = &mut self.memory;
        self.position_projection
            .write(layout, cursor.row()?, record, memory, false)?;
        Ok(true)
    }

    /// Inserts a record.
    ///
    /// # Safety
    /// `record` must be a record of the table, its blobs valid.
    pub unsafe fn insert(&mut self, transaction: &mut Transaction, record: *const u8) -> Outcome {
        // SAFETY: by the caller's promise.
        let record = unsafe { self.shared.record(record)? };
        let mut values = Values::new();
        // SAFETY: by the caller's promise.
        unsafe { record::values(self.layout(), record, &mut values)? };
        let result = transaction.insert(&self.table, &values);
        checked(self.layout(), result)
    }

    /// Changes the row last read; false when it is the same already.
    ///
    /// # Safety
    /// `old` and `new` must be records of the table, their blobs valid; `changed` a bitmap of its
    /// columns.
    pub unsafe fn update(
        &mut self,
        transaction: &mut Transaction,
        old: *const u8,
        new: *const u8,
        changed: *const u64,
    ) -> Outcome<bool> {
        // SAFETY: by the caller's promise.
        let (old, new, changed) = unsafe {
            (
                self.shared.record(old)?,
                self.shared.record(new)?,
                self.shared.bitmap(changed)?,
            )
        };
        let shared = Arc::clone(&self.shared);
        let layout = &shared.layout;
        let mut values = Values::new();
        for &number in &layout.stored {
            let column = &layout.columns[number];
            // What the statement does not set need not have been read: its bytes mean nothing.
            if has(changed, number) || !record::same_bytes(column, old, new) {
                // SAFETY: by the caller's promise.
                values.push(unsafe { record::value(column, new)? });
            } else {
                values.push(Value::OutOfRow(0));
            }
        }
        let mut key = std::mem::take(&mut self.row_key);
        key.clear();
        key.extend_from_slice(self.current_key()?);
        let result = self.update_kept(transaction, &key, values);
        self.row_key = key;
        result
    }

    /// Updates a row; values given as outside the row are as they are now.
    fn update_kept(
        &mut self,
        transaction: &mut Transaction,
        key: &[u8],
        given: Values<'_>,
    ) -> Outcome<bool> {
        let layout = &self.shared.layout;
        let cursor = match self.current {
            Current::Position => &mut self.positioned,
            _ => &mut self.cursor,
        };
        if let Some((purpose, cursor)) = cursor {
            // Read with a lock, so nobody has changed it since.
            if purpose.reading.lock == RowLock::Exclusive && !purpose.index_only {
                let now = cursor.row()?;
                if same_row(&given, &now)? {
                    return Ok(false);
                }
                let row = with_kept(&given, |column| Ok(now.get(column)?))?;
                checked(layout, transaction.update(&self.table, key, &row))?;
                return Ok(true);
            }
        }
        let read = |row: RowView<'_>| row.to_values();
        let now = transaction
            .get_locked(&self.table, key, RowLock::Exclusive, read)?
            .ok_or_else(|| Failure::new(Code::Internal, "the row to change is gone"))??;
        let row = with_kept(&given, |column| Ok(now[column].as_value()))?;
        checked(layout, transaction.update(&self.table, key, &row))?;
        Ok(true)
    }

    /// Deletes the row last read.
    pub fn delete(&mut self, transaction: &mut Transaction) -> Outcome {
        let result = transaction.delete(&self.table, self.current_key()?);
        checked(self.layout(), result)
    }

    /// About how many rows lie between two key images.
    ///
    /// # Safety
    /// The images must be null or valid for their parts.
    pub unsafe fn estimate_range(
        &mut self,
        key: u32,
        low: (*const u8, u64, bool),
        high: (*const u8, u64, bool),
    ) -> Outcome<u64> {
        let layout = &self.shared.layout;
        let index = layout.key(key)?.index;
        let mut bounds = [None, None];
        for (bound, (image, map, _)) in bounds.iter_mut().zip([low, high]) {
            if !image.is_null() {
                let mut encoded = Vec::new();
                // SAFETY: by the caller's promise.
                unsafe { Self::encode(&self.table, layout, key, image, map, &mut encoded)? };
                *bound = Some(encoded);
            }
        }
        let [mut from, mut to] = bounds;
        if !low.2 {
            if let Some(prefix) = &mut from {
                if !successor(prefix) {
                    return Ok(0);
                }
            }
        }
        if !high.2 {
            if let Some(prefix) = &mut to {
                if !predecessor(prefix) {
                    return Ok(0);
                }
            }
        }
        Ok(self
            .table
            .estimate_range(index, from.as_deref(), to.as_deref())?)
    }

    /// Forgets the position, gives memory back, counts the rows read.
    pub fn reset(&mut self) {
        self.current = Current::None;
        self.next_end = None;
        self.condition = None;
        self.shared
            .engine
            .count_rows_read(std::mem::take(&mut self.rows_read));
        for buffer in &mut self.memory {
            if buffer.capacity() > KEPT_MEMORY {
                *buffer = Vec::new();
            }
        }
    }
}

/// A row in which values given as outside the row are taken from another.
fn with_kept<'a>(
    given: &[Value<'a>],
    kept: impl Fn(usize) -> Outcome<Value<'a>>,
) -> Outcome<Values<'a>> {
    given
        .iter()
        .enumerate()
        .map(|(column, &value)| match value {
            Value::OutOfRow(_) => kept(column),
            value => Ok(value),
        })
        .collect()
}

/// Whether a row has all values given, those given as outside the row aside.
fn same_row(given: &[Value<'_>], now: &RowView<'_>) -> Outcome<bool> {
    for (column, value) in given.iter().enumerate() {
        if !matches!(value, Value::OutOfRow(_)) && now.get(column)? != *value {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Names the server's key in a duplicate.
fn checked(layout: &Layout, result: peregrine::Result<()>) -> Outcome {
    result.map_err(|error| {
        let key = match &error {
            peregrine::Error::Duplicate { index } => {
                layout.key_of_index.get(*index).copied().unwrap_or(u32::MAX)
            }
            _ => u32::MAX,
        };
        Failure {
            key,
            ..error.into()
        }
    })
}

/// Makes a prefix the least that is greater than all that start with it; false: there is none.
fn successor(prefix: &mut Vec<u8>) -> bool {
    while let Some(last) = prefix.pop() {
        if last < u8::MAX {
            prefix.push(last + 1);
            return true;
        }
    }
    false
}

/// Makes a prefix the greatest such that all that start with it are less than the old one, and
/// nothing lies between; false: there is none.
fn predecessor(prefix: &mut Vec<u8>) -> bool {
    while let Some(last) = prefix.pop() {
        if last > 0 {
            prefix.push(last - 1);
            return true;
        }
    }
    false
}

impl SharedTable {
    /// The buffers of a target.
    ///
    /// # Safety
    /// They must be null or fit the table, and nobody else may use the record for `'a`.
    #[inline]
    pub unsafe fn buffers<'a>(&self, target: Target) -> Outcome<(&'a [u64], &'a mut [u8])> {
        if target.record.is_null() {
            return Err(Failure::argument("record"));
        }
        // SAFETY: not null, and fitting by the caller's promise.
        let record =
            unsafe { std::slice::from_raw_parts_mut(target.record, self.layout.record_length) };
        // SAFETY: by the caller's promise.
        Ok((unsafe { self.bitmap(target.columns)? }, record))
    }

    /// # Safety
    /// `bitmap` must be null or a bitmap of the table's columns.
    #[inline]
    pub unsafe fn bitmap<'a>(&self, bitmap: *const u64) -> Outcome<&'a [u64]> {
        if bitmap.is_null() || !bitmap.is_aligned() {
            return Err(Failure::argument("bitmap of columns"));
        }
        // SAFETY: not null, and fitting by the caller's promise.
        Ok(unsafe { std::slice::from_raw_parts(bitmap, self.layout.bitmap_length) })
    }

    /// # Safety
    /// `record` must be null or a record of the table.
    #[inline]
    unsafe fn record<'a>(&self, record: *const u8) -> Outcome<&'a [u8]> {
        if record.is_null() {
            return Err(Failure::argument("record"));
        }
        // SAFETY: not null, and fitting by the caller's promise.
        Ok(unsafe { std::slice::from_raw_parts(record, self.layout.record_length) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn nothing_lies_between_a_prefix_and_its_neighbours(
            prefix in prop::collection::vec(prop_oneof![Just(0u8), Just(255), any::<u8>()], 0..4),
            other in prop::collection::vec(prop_oneof![Just(0u8), Just(255), any::<u8>()], 0..6),
        ) {
            let mut after = prefix.clone();
            let has_after = successor(&mut after);
            let beyond = other > prefix && !other.starts_with(&prefix);
            prop_assert_eq!(beyond, has_after && other >= after);

            let mut before = prefix.clone();
            let has_before = predecessor(&mut before);
            // A proper prefix of the bound that ends in zeros is less than it too; no encoded
            // key is one, as keys of an index have all its parts.
            if !prefix.starts_with(&other) {
                let less = other < prefix;
                let inside = has_before && (other.starts_with(&before) || other < before);
                prop_assert_eq!(less, inside);
            }
        }
    }
}
