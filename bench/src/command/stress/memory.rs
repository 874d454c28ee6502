//! `peregrine bench memory`: a mixed load within a hard limit on the server's memory.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use peregrine_bench::stress::memory::{
    Request, {self},
};
use peregrine_bench::stress::size::resident_bytes;
use peregrine_harness::engines::Engine;
use peregrine_harness::error::{HarnessError, Result};
use peregrine_harness::interrupt;
use peregrine_harness::server::MemoryLimit;

use crate::command::arguments::MemoryArguments;
use peregrine_harness::command::exit::status;
use peregrine_harness::command::host;

/// Connections of the load and of the command itself.
const CONNECTIONS: u32 = 16;

/// Memory allowed in addition to the server's own memory and the cache.
///
/// For the engine: half a cache of locks, and the memory stated in `docs/reliability.md`. For the server: the sessions'
/// long values and sorts.
const BESIDE: u64 = 160 << 20;

/// Exit status where the limit can't be set.
const UNAVAILABLE: u8 = 69;

/// Runs the load and prints one line; exit status 1 when the server was killed, exceeded the limit, or gave a wrong
/// answer, 69 where no limit can be set.
///
/// # Errors
/// Any error of the action; the caller prints it.
pub fn run(arguments: &MemoryArguments) -> Result<ExitCode> {
    // By default, other engines and temporary tables would take more memory than the cache.
    let server_options = || {
        ["--aria-pagecache-buffer-size=8M", "--key-buffer-size=1M"]
            .map(str::to_owned)
            .to_vec()
    };
    let bare = {
        let purpose = "memory-bare";
        let server = host::start(&arguments.host, &[], CONNECTIONS, purpose, server_options())?;
        let connections: Vec<_> = (0..CONNECTIONS)
            .map(|_| server.connect(None))
            .collect::<Result<_>>()?;
        let bytes = resident_bytes(server.process()?).unwrap_or(0);
        drop(connections);
        server.remove()?;
        bytes
    };
    let cache = arguments.host.cache;
    let bytes = arguments.limit.unwrap_or(bare + cache + cache / 2 + BESIDE);
    let Some(limit) = MemoryLimit::new(bytes).map(Arc::new) else {
        eprintln!("peregrine: no control group with a limit on memory can be made here, which needs rights");
        return Ok(ExitCode::from(UNAVAILABLE));
    };
    eprintln!(
        "the server alone takes {} MB; limit {} MB",
        bare >> 20,
        bytes >> 20
    );
    let server = host::start_within(
        Some(Arc::clone(&limit)),
        &arguments.host,
        &[Engine::Peregrine],
        CONNECTIONS,
        "memory",
        server_options(),
    )?;
    let request = Request {
        duration: Duration::from_secs_f64(arguments.duration),
        seed: arguments.seed,
        bare,
    };
    let outcome = match memory::run(&server, &limit, &request, |text| eprintln!("{text}")) {
        Err(HarnessError::Interrupted) => return Ok(ExitCode::from(interrupt::EXIT_STATUS)),
        other => other?,
    };
    println!("{outcome}");
    for fault in outcome.faults.iter().take(10) {
        eprintln!("  {fault}");
    }
    if outcome.held() {
        server.remove()?;
    }
    Ok(status(outcome.held()))
}
