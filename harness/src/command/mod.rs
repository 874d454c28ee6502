//! The parts of a command line that several commands have.
//!
//! | file | holds |
//! |---|---|
//! | `reading.rs` | errors with the allowed names |
//! | `arguments.rs` | options of the servers that commands start |
//! | `host.rs` | such a server |
//! | `directory.rs` | directories for results |
//! | `exit.rs` | exit statuses |
//! | `values.rs` | sizes, times, parameters |

pub mod arguments;
pub mod directory;
pub mod exit;
pub mod host;
pub mod reading;
pub mod values;
