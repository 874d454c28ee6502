//! Knobs of the plug-in.

use peregrine::knobs;

/// See the header.
#[no_mangle]
pub extern "C" fn peregrine_row_batch_bytes() -> usize {
    knobs::row_batch_bytes()
}

/// See the header.
#[no_mangle]
pub extern "C" fn peregrine_join_batch_rows() -> usize {
    knobs::join_batch_rows()
}

/// See the header.
#[no_mangle]
pub extern "C" fn peregrine_bulk_insert_rows() -> u64 {
    knobs::bulk_insert_rows()
}
