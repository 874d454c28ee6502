//! The rows of many keys, read together.

use peregrine::MultiGet;

use super::Handle;
use crate::c_types::Target;
use crate::failure::{Failure, Outcome};
use crate::session::Session;

/// `PEREGRINE_MOST_KEYS`.
const _: () = assert!(MultiGet::MOST == 512);

impl Handle {
    /// Reads the rows of the keys that are `wanted`, each into its own record, and clears the mark of a key without a
    /// row.
    ///
    /// The key in use must be the clustered one.
    ///
    /// # Safety
    /// `keys` must hold an image of all parts of the key, every `key_length` bytes, for each byte of `wanted`; `target`
    /// must fit the table that many times, every `stride` bytes.
    pub unsafe fn multi_get(
        &mut self,
        session: &mut Session,
        keys: &[u8],
        key_length: usize,
        target: Target,
        stride: usize,
        wanted: &mut [u8],
    ) -> Outcome {
        let layout = &self.shared.layout;
        let key = layout.key(self.key)?;
        let length: usize = key
            .parts
            .iter()
            .map(|part| part.image_length(&layout.columns[part.column]))
            .sum();
        if key.index != 0 || length != key_length || key_length == 0 {
            return Err(Failure::argument(
                "keys of another key than the clustered one",
            ));
        }
        if wanted.len() > MultiGet::MOST {
            return Err(Failure::argument("number of keys"));
        }
        let all_parts = !(u64::MAX << key.parts.len());
        self.together.clear();
        for (image, mark) in keys.chunks_exact(key_length).zip(wanted.iter()) {
            if *mark == 0 {
                continue;
            }
            // SAFETY: the image has all parts, by the caller's promise.
            unsafe {
                Self::encode(
                    &self.table,
                    layout,
                    self.key,
                    image.as_ptr(),
                    all_parts,
                    &mut self.search_key,
                )?;
            }
            self.together.add(&self.search_key)?;
        }
        // SAFETY: by the caller's promise.
        let columns = unsafe { self.shared.bitmap(target.columns)? };
        if !self.together_projection.fits(columns, None) {
            self.together_projection
                .prepare(layout, columns, &self.table, None, false);
            let stored = self.together_projection.stored();
            self.together.set_columns(Some(&stored));
        }
        session.transaction()?.multi_get(&mut self.together)?;
        let marks = wanted
            .iter_mut()
            .enumerate()
            .filter(|(_, mark)| **mark != 0);
        for (read, (n, mark)) in marks.enumerate() {
            let row = self.together.row(read)?;
            let Some(row) = row else {
                *mark = 0;
                continue;
            };
            self.rows_read += 1;
            // SAFETY: by the caller's promise.
            let record = unsafe {
                self.shared
                    .record_mut(target.record.wrapping_add(n * stride))?
            };
            let memory = &mut self.memory;
            self.together_projection
                .write(layout, row, record, memory, false)?;
        }
        Ok(())
    }
}
