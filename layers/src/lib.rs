//! The dependencies between the files of a crate, read from its source.
//!
//! A file names an item by `use`, or by a path. A name that a module re-exports (`pub use`) counts for the module that
//! defines it. Names between a module and its own submodules do not count, and neither do tests. Paths in the arguments
//! of macros, and methods, are not seen. The crate also finds files that are too long, folders with too many files, and
//! broken links in documents.
#![forbid(unsafe_code)]

mod cycles;
mod links;
mod sizes;
mod source;

pub use cycles::{cycles, Cycle};
pub use links::broken_links;
pub use sizes::too_large;
pub use source::{Crate, Reference};
