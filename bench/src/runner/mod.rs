//! The runner of a comparison: it loads every engine, measures every cell of the matrix with the engines side by side,
//! and records the results.

pub mod disk;
pub mod kept;
pub mod load;
pub mod loading;
pub mod machine;
pub mod measured;
pub mod measurement_session;
pub mod measuring;
pub mod plan;
pub mod progress;
mod quiesce;
pub mod summary;

pub use measurement_session::{run, Outcome};
pub use plan::profile::Profile;
pub use plan::request::{PrivateServer, Request, Server};
