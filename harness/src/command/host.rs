//! The private server that a measurement or a proof runs on.

use std::path::Path;
use std::sync::Arc;

use crate::engines::hosted::{Hosted, Place};
use crate::engines::settings::Settings;
use crate::engines::Engine;
use crate::error::Result;
use crate::server::installation::{find_plugin, target_directory};
use crate::server::{Installation, MemoryLimit};

use super::directory::new_directory;
use crate::command::arguments::{HostArguments, MariadbdArguments};

/// Bytes of each engine's cache unless given.
const CACHE_BYTES: u64 = 128 << 20;

/// Starts a server for the engines in a new directory named by its purpose.
///
/// # Errors
/// When there is no MariaDB or plug-in, or the server does not start.
pub fn start(
    arguments: &HostArguments,
    engines: &[Engine],
    most_threads: u32,
    purpose: &str,
    server_options: Vec<String>,
) -> Result<Hosted> {
    start_within(
        None,
        arguments,
        engines,
        most_threads,
        purpose,
        server_options,
    )
}

/// Like [`start`], with a limit on the server's memory.
///
/// # Errors
/// As [`start`].
pub fn start_within(
    memory_limit: Option<Arc<MemoryLimit>>,
    arguments: &HostArguments,
    engines: &[Engine],
    most_threads: u32,
    purpose: &str,
    server_options: Vec<String>,
) -> Result<Hosted> {
    let mut place = place(&arguments.mariadbd, engines, most_threads, purpose)?;
    place.settings.cache_bytes = arguments.cache;
    place.server_options.splice(0..0, server_options);
    place.memory_limit = memory_limit;
    Hosted::start(place)
}

/// Returns the place of a server for the engines: a new directory named by its purpose, with the default cache.
///
/// # Errors
/// When there is no MariaDB or plug-in.
pub fn place(
    mariadbd: &MariadbdArguments,
    engines: &[Engine],
    most_threads: u32,
    purpose: &str,
) -> Result<Place> {
    let target = target_directory();
    let plugin = match engines.contains(&Engine::Peregrine) {
        true => Some(find_plugin(&target, mariadbd.plugin.as_deref())?),
        false => None,
    };
    Ok(Place {
        installation: Installation::find(&target)?,
        plugin,
        settings: Settings {
            engines: engines.to_vec(),
            cache_bytes: CACHE_BYTES,
            most_threads,
            charset: "latin1".to_owned(),
        },
        dir: new_directory(None::<&Path>, &target.join("bench"), purpose)?,
        server_options: mariadbd.options.clone(),
        environment: Vec::new(),
        memory_limit: None,
    })
}
