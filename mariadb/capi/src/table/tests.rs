//! Calls of the server for tables that are in use, or damaged.

use crate::c_types::Code;
use crate::fixture::{record, with_definition, Open, OK};

use super::*;

#[test]
fn a_table_that_can_not_be_dropped_keeps_no_other() {
    let open = Open::new();
    for name in [c"s", c"u"] {
        // SAFETY: the engine is open, and all that the pointers point to lives until the end of the call.
        let created = with_definition(&[0, 1], |definition| unsafe {
            peregrine_table_create(open.engine, name.as_ptr(), 1, definition, 1, 0, 0)
        });
        assert_eq!(created, OK);
    }
    open.start();
    open.insert(record(1, None, None));
    // SAFETY: the engine is open; an empty name.
    let dropped = unsafe { peregrine_tables_drop(open.engine, c"".as_ptr(), 0) };
    assert_eq!(dropped, Code::Busy as i32);
    // SAFETY: the engine is open.
    let engine = unsafe { &*open.engine };
    assert_eq!(engine.database.table_names(), ["t"]);
}
