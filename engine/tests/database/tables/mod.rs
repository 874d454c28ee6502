//! Tables, their names and their sizes.

mod check_in_use;
mod inspection;
mod larger_than_memory;
mod many_tables;
pub(crate) mod one_table;
mod other_names;
mod own_tables;
pub(crate) mod schemas;
