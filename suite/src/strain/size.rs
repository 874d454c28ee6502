//! What a server takes of memory and disk.

use std::path::Path;

use crate::error::Result;
use crate::runner::disk;
use crate::server::process::Process;
use crate::target::hosted::Hosted;

/// Bytes taken at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Size {
    /// Resident memory of the server.
    pub memory: u64,
    /// Space that the file system has allocated for the whole data directory, logs included.
    pub disk: u64,
}

impl Size {
    /// What the server takes now.
    ///
    /// # Errors
    /// When the server does not run, or its files can't be read.
    pub fn of(server: &Hosted) -> Result<Self> {
        Ok(Self {
            memory: resident_bytes(server.process()?).unwrap_or(0),
            disk: directory_bytes(&server.data_dir())?,
        })
    }

    /// In megabytes: memory and disk.
    #[must_use]
    pub fn megabytes(&self) -> String {
        format!(
            "{} MB memory, {} MB disk",
            self.memory >> 20,
            self.disk >> 20
        )
    }
}

/// The process's resident memory, in bytes (`VmRSS`).
#[must_use]
pub fn resident_bytes(process: Process) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{}/status", process.pid)).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

fn directory_bytes(dir: &Path) -> Result<u64> {
    Ok(disk::allocated_bytes(&disk::all_files(dir)?))
}
