//! Running a comparison: load every engine, then measure every cell of the matrix, engines side by
//! side, and write down what was found.

pub mod background_load;
pub mod client_cost;
pub mod command_line;
pub mod disk;
mod embedded_host;
pub mod host;
mod hosts;
pub mod insert;
pub mod interrupt;
pub mod live_counters;
pub mod load_generator;
pub mod loading;
pub mod machine;
pub mod matrix;
pub mod measurement_session;
pub mod measuring;
pub mod pace;
mod planned;
pub mod plans;
pub mod profile;
pub mod progress;
mod quiesce;
mod remote_host;
pub mod request;
mod sandbox_host;
pub mod seconds;
mod server_host;
pub mod summary;

pub use measurement_session::{run, Outcome};
pub use profile::Profile;
pub use request::{PrivateServer, Request, Server};
