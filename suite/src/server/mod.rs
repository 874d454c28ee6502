//! A private MariaDB server: finding one, and running it on a data directory of its own, over a
//! Unix socket only, beside whatever the machine's own services do.

pub mod installation;
pub mod memory_limit;
pub mod process;
pub mod sandbox;
pub mod socket;

pub use installation::Installation;
pub use memory_limit::MemoryLimit;
pub use sandbox::{Running, Sandbox, StartOptions, Status};
