//! `peregrine prove full-disk`: a database whose disk the log has filled resumes by itself.

use std::process::ExitCode;

use peregrine_harness::error::{HarnessError, Result};
use peregrine_harness::interrupt;
use peregrine_prove::full_disk::{
    Kind, Request, {self},
};

use crate::command::arguments::{FullDiskArguments, FullDiskKind};

/// Exit status where no file system can be mounted.
const UNAVAILABLE: u8 = 69;

/// Fills disks, and prints one line; exit status 1 when the database did not resume or lost something, 69 where no file
/// system can be mounted.
///
/// # Errors
/// Any error of the action; the caller prints it.
pub fn run(arguments: &FullDiskArguments) -> Result<ExitCode> {
    let scratch = std::env::temp_dir().join(format!("peregrine-full-disk-{}", std::process::id()));
    let request = Request {
        times: arguments.times,
        seed: arguments.seed,
        kind: match arguments.disk {
            FullDiskKind::Simulated => Kind::Simulated,
            FullDiskKind::Tmpfs => Kind::Tmpfs,
            FullDiskKind::Ext4 => Kind::Ext4,
        },
        scratch: scratch.clone(),
    };
    let outcome = full_disk::run(&request, |text| eprintln!("{text}"));
    if scratch.exists() {
        let removed = std::fs::remove_dir_all(&scratch);
        if let Err(error) = removed {
            eprintln!("cannot remove {}: {error}", scratch.display());
        }
    }
    let outcome = match outcome {
        Err(HarnessError::Interrupted) => return Ok(ExitCode::from(interrupt::EXIT_STATUS)),
        Err(HarnessError::Usage(what)) => {
            eprintln!("peregrine prove: no file system can be mounted here: {what}");
            return Ok(ExitCode::from(UNAVAILABLE));
        }
        other => other?,
    };
    println!("{outcome}");
    Ok(match outcome.held() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}
