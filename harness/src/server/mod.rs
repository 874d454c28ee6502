//! A private MariaDB server: finds one and runs it on a data directory of its own, over a Unix socket only, independent
//! of the machine's own services.

pub mod installation;
pub mod memory_limit;
pub mod process;
pub mod sandbox;
pub mod socket;

pub use installation::Installation;
pub use memory_limit::MemoryLimit;
pub use sandbox::{Running, Sandbox, StartOptions, Status};
