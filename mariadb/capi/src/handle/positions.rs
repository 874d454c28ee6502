//! Positions: bytes by which the server reads a row again.

use peregrine::{Cursor, CursorOptions, Seek, Transaction};

use super::{Current, Handle, Purpose, Reading};
use crate::c_types::Target;
use crate::failure::{Failure, Outcome};
use crate::table::POSITION_LENGTH_BYTES;

impl Handle {
    /// Returns the clustered key of the row last read.
    pub(super) fn current_key(&self) -> Outcome<&[u8]> {
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
    ///
    /// No encoded key is a prefix of another, so positions have the order of their keys.
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

    /// Reads the row at a position; false: the row is gone.
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
            let mut cursor = Cursor::new(&self.table, 0, options);
            if reading.newest {
                cursor.read_newest();
            }
            self.positioned = Some((purpose, cursor));
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
                .prepare(layout, wanted, &self.table, None, false);
        }
        let memory = &mut self.memory;
        self.position_projection
            .write(layout, cursor.row()?, record, memory, false)?;
        Ok(true)
    }
}
