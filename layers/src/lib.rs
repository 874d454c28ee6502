//! Which file of a crate names what of which other, read from its source.
//!
//! A file names an item by `use`, or by a path. A name that a module passes on (`pub use`) counts where it is defined.
//! What a module and its own submodules name of each other is left out, as are tests. Not seen are paths within calls
//! of macros, and methods. And what is too long, or too much for one folder; and links of documents that lead nowhere.
#![forbid(unsafe_code)]

mod cycles;
mod links;
mod sizes;
mod source;

pub use cycles::{cycles, Cycle};
pub use links::broken_links;
pub use sizes::too_large;
pub use source::{Crate, Reference};
