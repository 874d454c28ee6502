//! Changes, and the state after they are undone.

mod auto_increment;
mod bulk_insert;
mod half_undone;
mod moved_entries;
mod prepared;
mod statements;
mod taken_back;
mod unwound;
mod values_outside;
