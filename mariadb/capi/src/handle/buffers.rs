//! The server's buffers as slices: records and bitmaps of columns.

use crate::c_types::Target;
use crate::failure::{Failure, Outcome};
use crate::table::SharedTable;

impl SharedTable {
    /// Returns the buffers of a target.
    ///
    /// # Safety
    /// They must be null or fit the table, and no other code may use the record for `'a`.
    #[inline]
    pub unsafe fn buffers<'a>(&self, target: Target) -> Outcome<(&'a [u64], &'a mut [u8])> {
        // SAFETY: by the caller's promise.
        unsafe {
            let record = self.record_mut(target.record)?;
            Ok((self.bitmap(target.columns)?, record))
        }
    }

    /// # Safety
    /// `record` must be null or a record of the table that no other code uses for `'a`.
    #[inline]
    pub unsafe fn record_mut<'a>(&self, record: *mut u8) -> Outcome<&'a mut [u8]> {
        if record.is_null() {
            return Err(Failure::argument("record"));
        }
        // SAFETY: not null, and fitting by the caller's promise.
        Ok(unsafe { std::slice::from_raw_parts_mut(record, self.layout.record_length) })
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
    pub unsafe fn record<'a>(&self, record: *const u8) -> Outcome<&'a [u8]> {
        if record.is_null() {
            return Err(Failure::argument("record"));
        }
        // SAFETY: not null, and fitting by the caller's promise.
        Ok(unsafe { std::slice::from_raw_parts(record, self.layout.record_length) })
    }
}
