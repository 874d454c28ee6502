//! The server's conditions on index entries: callbacks that run before rows are fetched.

use std::ffi::c_void;
use std::sync::Arc;

use peregrine::{EntryFilter, Error, Result, RowView, Verdict};

use crate::c_types::{Check, Target};
use crate::rows::record::Projection;
use crate::table::SharedTable;

/// A condition of the server on the columns of an index.
#[derive(Clone)]
pub struct Condition {
    check: Check,
    context: *mut c_void,
    target: Target,
    /// A number that differs for each condition of a handle; 0 means none.
    pub number: u64,
}

impl Condition {
    /// Creates a condition that `check` decides from the record of `target`, given `context`.
    pub fn new(check: Check, context: *mut c_void, target: Target, number: u64) -> Self {
        Condition {
            check,
            context,
            target,
            number,
        }
    }

    /// Returns the condition as the filter of a cursor over an index.
    ///
    /// # Safety
    /// The target must fit the table, and stay valid, like the context, for as long as the cursor
    /// has the filter.
    pub unsafe fn filter(&self, shared: &Arc<SharedTable>, index: usize) -> Box<dyn EntryFilter> {
        let shared = Arc::clone(shared);
        let mut projection = Projection::default();
        // SAFETY: by the caller's promise.
        let wanted = unsafe { shared.bitmap(self.target.columns) }.unwrap_or(&[]);
        projection.prepare(&shared.layout, wanted, &shared.table(), Some(index), false);
        Box::new(Filter {
            condition: self.clone(),
            shared,
            projection,
            memory: Vec::new(),
        })
    }
}

struct Filter {
    condition: Condition,
    shared: Arc<SharedTable>,
    projection: Projection,
    memory: Vec<Vec<u8>>,
}

// SAFETY: the pointers are the server's handler and its record. The cursor with the filter belongs to the handler, and
// only the handler's thread uses it.
unsafe impl Send for Filter {}

impl EntryFilter for Filter {
    fn look(&mut self, entry: &RowView<'_>) -> Result<Verdict> {
        let layout = &self.shared.layout;
        // SAFETY: by the promise to `Condition::filter`.
        let (_, record) = unsafe { self.shared.buffers(self.condition.target) }
            .map_err(|failure| Error::Internal(failure.text))?;
        self.projection
            .write(layout, *entry, record, &mut self.memory, false)
            .map_err(|failure| Error::Internal(failure.text))?;
        // SAFETY: by the promise to `Condition::filter`.
        match unsafe { (self.condition.check)(self.condition.context) } {
            0 => Ok(Verdict::Keep),
            1 => Ok(Verdict::Skip),
            2 => Ok(Verdict::Stop),
            _ => Err(Error::Interrupted),
        }
    }
}
