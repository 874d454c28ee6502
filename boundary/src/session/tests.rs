//! Statements and savepoints, as the server calls for them.

use super::*;
use crate::c_types::Target;
use crate::fixture::{record, Open, Record, END, OK};
use crate::row_calls::peregrine_multi_get;

impl Open {
    /// Those of the ids of which there is a row.
    fn found(&self, ids: &[u32]) -> Vec<u32> {
        self.use_key(0, 0);
        let found = ids.iter().copied().filter(|id| {
            let mut rows: [Record; 1] = [[0; 16]];
            let columns = 1u64;
            let target = Target {
                record: rows.as_mut_ptr().cast(),
                columns: &columns,
            };
            let (key, mut wanted) = (id.to_le_bytes(), [1u8]);
            // SAFETY: one key, one record, one mark.
            let code = unsafe {
                peregrine_multi_get(
                    self.handle,
                    self.session,
                    key.as_ptr(),
                    key.len(),
                    1,
                    target,
                    size_of::<Record>(),
                    wanted.as_mut_ptr(),
                )
            };
            assert!([OK, END].contains(&code));
            wanted[0] != 0
        });
        found.collect()
    }

    fn savepoint(&self) -> u64 {
        let mut number = 0;
        // SAFETY: the session is this thread's.
        let code = unsafe { peregrine_savepoint_set(self.session, &mut number) };
        assert_eq!(code, OK);
        number
    }

    fn roll_back_to(&self, savepoint: u64) {
        // SAFETY: the session is this thread's.
        let code = unsafe { peregrine_savepoint_rollback(self.session, savepoint) };
        assert_eq!(code, OK);
    }

    fn roll_statement_back(&self) {
        // SAFETY: the session is this thread's.
        assert_eq!(unsafe { peregrine_statement_rollback(self.session) }, OK);
    }
}

fn row(id: u32) -> Record {
    record(id, Some(1), None)
}

/// A stored function may set a savepoint, and roll back to it, while the statement that calls it has
/// changed rows already.
#[test]
fn a_failing_statement_is_undone_whole_though_a_function_rolled_back_within_it() {
    let open = Open::new();
    open.start();
    open.insert(row(1));
    open.start();
    open.insert(row(2));
    let savepoint = open.savepoint();
    open.insert(row(3));
    open.roll_back_to(savepoint);
    open.insert(row(4));
    open.roll_statement_back();
    open.start();
    assert_eq!(open.found(&[1, 2, 3, 4]), [1]);
}

#[test]
fn a_statement_that_begins_with_a_savepoint_is_undone_from_there() {
    let open = Open::new();
    open.start();
    open.insert(row(1));
    open.start();
    let savepoint = open.savepoint();
    open.insert(row(2));
    open.roll_back_to(savepoint);
    open.insert(row(3));
    open.roll_statement_back();
    open.start();
    assert_eq!(open.found(&[1, 2, 3]), [1]);
    // One of an earlier statement, beyond which the mark of a later one does not reach.
    let savepoint = open.savepoint();
    open.start();
    open.insert(row(4));
    open.start();
    open.roll_back_to(savepoint);
    open.insert(row(5));
    open.roll_statement_back();
    open.start();
    assert_eq!(open.found(&[1, 4, 5]), [1]);
}
