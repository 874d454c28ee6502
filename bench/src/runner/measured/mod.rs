//! The measured systems: a private server, a server at a URL, or embedded stores in this process.

pub(super) mod embedded_host;
pub mod host;
pub(super) mod hosts;
pub(super) mod remote_host;
pub(super) mod sandbox_host;
pub(super) mod server_host;
