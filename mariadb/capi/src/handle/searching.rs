//! Searches in an index, and steps from row to row.

use peregrine::{Cursor, CursorOptions, RowLock, Seek, Table, Transaction};

use super::{Current, Handle, Purpose, Step};
use crate::c_types::{Code, Target};
use crate::failure::{Failure, Outcome};
use crate::planted::{is_planted, Fault};
use crate::rows::key_image;
use crate::rows::layout::Layout;
use crate::rows::record::{has, Projection, Values};
use crate::session::Session;

/// Decodes a `peregrine_seek`.
pub(crate) fn seek(number: u32) -> Outcome<Seek> {
    Ok(match number {
        0 => Seek::Exact,
        1 => Seek::AtOrAfter,
        2 => Seek::After,
        3 => Seek::AtOrBefore,
        4 => Seek::Before,
        5 => Seek::First,
        6 => Seek::Last,
        7 => Seek::ExactLast,
        _ => return Err(Failure::argument("kind of a search")),
    })
}

impl Handle {
    /// Encodes the parts of a key image that are in `map`; nothing for a null image.
    ///
    /// # Safety
    /// `image` must be null or valid for these parts.
    pub(super) unsafe fn encode(
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
            // In the engine's keys the whole clustered key follows. The server's images have only those of its columns
            // that the key lacks.
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

    /// Sets the end of the next search's scan; a null image removes it.
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

    /// Guards the values of a key image in the key in use: [`Transaction::guard`].
    ///
    /// # Safety
    /// `image` must be null or valid for the parts of `map`.
    pub unsafe fn guard(&mut self, session: &mut Session, image: *const u8, map: u64) -> Outcome {
        let layout = &self.shared.layout;
        let index = layout.key(self.key)?.index;
        // SAFETY: by the caller's promise.
        unsafe {
            Self::encode(
                &self.table,
                layout,
                self.key,
                image,
                map,
                &mut self.search_key,
            )?;
        }
        let transaction = session.transaction()?;
        Ok(transaction.guard(&self.table, index, &self.search_key)?)
    }

    /// Prepares the cursor for a search that reads `wanted`.
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
                || gives(layout, &self.table, index, wanted));
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
        let is_another = !same(&self.cursor);
        if is_another {
            std::mem::swap(&mut self.cursor, &mut self.spare);
            if !same(&self.cursor) {
                let options = CursorOptions {
                    lock: self.reading.lock,
                    skip_locked: self.reading.skip_locked,
                    index_only,
                };
                let mut cursor = Cursor::new(&self.table, index, options);
                if self.reading.newest {
                    cursor.read_newest();
                }
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
            cursor.set_semi_consistent(self.semi_consistent);
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
        let entries_of = index_only.then_some(index);
        if is_another || !self.scan_projection.fits(wanted, entries_of) {
            self.tell(wanted);
        }
        Ok(())
    }

    /// Tells the cursor which columns its rows will be asked for; false when an index-only cursor can't give them.
    fn tell(&mut self, wanted: &[u64]) -> bool {
        let Some((purpose, cursor)) = &mut self.cursor else {
            return false;
        };
        let (layout, table) = (&self.shared.layout, &self.table);
        let index = purpose.index_only.then_some(purpose.index);
        if !self.scan_projection.fits(wanted, index) {
            self.scan_projection
                .prepare(layout, wanted, table, index, true);
        }
        let covered = index.is_none_or(|index| gives(layout, table, index, wanted));
        let columns = covered.then(|| self.scan_projection.stored());
        cursor.set_columns(columns.as_deref());
        covered
    }

    /// Searches in the key in use; false: there is no such row.
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
        let seek = seek(to)?;
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
        };
        self.take(transaction, found, wanted, record)
    }

    /// Moves the scan and reads a row; false: at the end.
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
        if self.generation != generation {
            // The scan began in a transaction that has ended: the statement HANDLER does that.
            self.generation = generation;
            cursor.step_off();
        }
        let mut found = moved(cursor, transaction, step)?;
        if found && self.key != u32::MAX && is_planted(Fault::SkipRow) {
            found = moved(cursor, transaction, step)?;
        }
        self.take(transaction, found, wanted, record)
    }

    /// Moves the scan and reads up to `most` rows; returns their number.
    ///
    /// # Safety
    /// `target` must fit the table `most` times, every `stride` bytes.
    pub unsafe fn steps(
        &mut self,
        session: &mut Session,
        target: Target,
        stride: usize,
        most: usize,
        step: Step,
    ) -> Outcome<usize> {
        let mut rows = 0;
        while rows < most {
            let at = |rows: usize| Target {
                record: target.record.wrapping_add(rows * stride),
                ..target
            };
            // SAFETY: by the caller's promise.
            if !unsafe { self.step(session, at(rows), step)? } {
                break;
            }
            rows += 1;
            if !self.scan_projection.is_in_place() {
                continue;
            }
            // The checks of the first step also hold for the steps that follow.
            let (Some((_, cursor)), transaction) = (&mut self.cursor, session.transaction()?)
            else {
                break;
            };
            let mut in_leaf = false;
            while rows < most {
                if !(in_leaf && cursor.next_in_leaf()?) {
                    if !moved(cursor, transaction, step)? {
                        self.current = Current::None;
                        return Ok(rows);
                    }
                    in_leaf = step != Step::Previous
                        && cursor.is_in_leaf(transaction, step == Step::NextSame);
                }
                // SAFETY: by the caller's promise.
                let record = unsafe { self.shared.record_mut(at(rows).record)? };
                self.scan_projection.write_in_place(cursor, record)?;
                self.rows_read += 1;
                rows += 1;
            }
        }
        Ok(rows)
    }

    /// Sets whether scans read rows that others have locked without waiting: [`Cursor::set_semi_consistent`].
    pub fn set_semi_consistent(&mut self, tries: bool) {
        self.semi_consistent = tries;
        for (_, cursor) in self.cursor.iter_mut().chain(&mut self.spare) {
            cursor.set_semi_consistent(tries);
        }
    }

    /// Returns whether the row last read is not locked, but its last committed version.
    pub fn was_semi_consistent(&self) -> bool {
        self.current == Current::Scan
            && self
                .cursor
                .as_ref()
                .is_some_and(|(_, cursor)| cursor.was_semi_consistent())
    }

    /// Releases the lock of the row last read: [`Cursor::unlock_row`].
    pub fn unlock_row(&mut self, transaction: &mut Transaction) {
        let cursor = match self.current {
            Current::Scan => &mut self.cursor,
            Current::Position => &mut self.positioned,
            Current::None => return,
        };
        if let Some((_, cursor)) = cursor {
            cursor.unlock_row(transaction);
        }
    }

    /// Reads the scan cursor's current row.
    ///
    /// After an error, the next step reads this row again.
    #[inline]
    fn take(
        &mut self,
        transaction: &mut Transaction,
        found: bool,
        wanted: &[u64],
        record: &mut [u8],
    ) -> Outcome<bool> {
        let taken = self.take_found(transaction, found, wanted, record);
        if taken.is_err() {
            self.current = Current::None;
            if let Some((_, cursor)) = &mut self.cursor {
                cursor.step_back();
            }
        }
        taken
    }

    #[inline]
    fn take_found(
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
        let Some((purpose, _)) = &self.cursor else {
            return Ok(false);
        };
        let index = purpose.index_only.then_some(purpose.index);
        if !self.scan_projection.fits(wanted, index) {
            // The server wants other columns than when the scan began.
            let covered = self.tell(wanted);
            if !covered {
                self.scan_projection = Projection::default();
            }
            if !covered || index.is_none() && self.reading.lock == RowLock::None {
                return self.take_whole(transaction, wanted, record);
            }
        }
        let Some((_, cursor)) = &mut self.cursor else {
            return Ok(false);
        };
        let layout = &self.shared.layout;
        self.scan_projection.write_in_place(cursor, record)?;
        if !self.scan_projection.is_in_place() {
            let memory = &mut self.memory;
            self.scan_projection
                .write(layout, cursor.row()?, record, memory, false)?;
        }
        Ok(true)
    }

    /// Reads the scan cursor's current row from the table, because the cursor may lack some of its columns.
    #[cold]
    fn take_whole(
        &mut self,
        transaction: &mut Transaction,
        wanted: &[u64],
        record: &mut [u8],
    ) -> Outcome<bool> {
        let Some((_, cursor)) = &self.cursor else {
            return Ok(false);
        };
        let layout = &self.shared.layout;
        let projection = &mut self.position_projection;
        projection.prepare(layout, wanted, &self.table, None, false);
        let memory = &mut self.memory;
        let read = transaction.get(&self.table, cursor.clustered_key(), |row| {
            projection.write(layout, row, record, memory, true)
        })?;
        match read {
            Some(written) => written.map(|()| true),
            None => Err(Failure::new(
                Code::Internal,
                "a scan's row that is not in the table",
            )),
        }
    }
}

/// Moves a scan's cursor; false: at the end.
#[inline]
fn moved(cursor: &mut Cursor, transaction: &mut Transaction, step: Step) -> Outcome<bool> {
    Ok(match step {
        Step::Next => cursor.next(transaction)?,
        Step::Previous => cursor.prev(transaction)?,
        Step::NextSame => cursor.next_same_prefix(transaction)?,
    })
}

/// Returns whether an index's entries have all columns that are wanted.
fn gives(layout: &Layout, table: &Table, index: usize, wanted: &[u64]) -> bool {
    let mut stored = layout.stored.iter().enumerate();
    stored.all(|(s, &c)| !has(wanted, c) || table.index_covers(index, s))
}
