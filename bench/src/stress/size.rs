//! The memory and disk space of a server.

use mysql::prelude::Queryable;

use crate::runner::disk;
use peregrine_harness::engines::hosted::Hosted;
use peregrine_harness::engines::Engine;
use peregrine_harness::error::{Result, StatementContext};
use peregrine_harness::server::process::Process;

/// Bytes at one moment.
///
/// Disk space is what the file system has allocated, not lengths of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Size {
    /// Resident memory of the server.
    pub memory: u64,
    /// The whole data directory: data, undo, log, and the server's own files.
    pub disk: u64,
    /// The engine's tables.
    ///
    /// For Peregrine, its one data file, including undo.
    pub data: u64,
    /// Old versions.
    ///
    /// For `InnoDB`, the system and undo tablespaces. For Peregrine, the undo pages in the data file, at their size in
    /// memory. Other engines have no separate files for them.
    pub undo: u64,
    /// The engine's redo log, including spare files.
    pub log: u64,
}

impl Size {
    /// Measures the server, and an engine on it.
    ///
    /// # Errors
    /// When the server is not running, or its files can't be read.
    pub fn of(server: &Hosted, engine: Engine) -> Result<Self> {
        let data_dir = server.data_dir();
        let files = disk::all_files(&data_dir)?;
        let of_files = |wanted: &dyn Fn(&str) -> bool| -> u64 {
            let chosen: Vec<_> = files
                .iter()
                .filter(|file| {
                    let within = file.strip_prefix(&data_dir).unwrap_or(file);
                    wanted(&within.to_string_lossy())
                })
                .cloned()
                .collect();
            disk::allocated_bytes(&chosen)
        };
        let (undo, log) = match engine {
            Engine::Peregrine => (
                undo_pages(server)? * PAGE,
                of_files(&|name| name.starts_with("#peregrine/log/")),
            ),
            Engine::InnoDb => (
                of_files(&|name| name.starts_with("ibdata") || name.starts_with("undo")),
                of_files(&|name| name.starts_with("ib_logfile")),
            ),
            Engine::MyRocks => (
                0,
                of_files(&|name| name.starts_with("#rocksdb") && name.ends_with(".log")),
            ),
            Engine::Aria => (0, of_files(&|name| name.starts_with("aria_log"))),
            Engine::MyIsam | Engine::Embedded(_) | Engine::Other(_) => (0, 0),
        };
        let data = match engine {
            // InnoDB's tables are in the directories of their schemas.
            Engine::InnoDb => of_files(&|name| name.ends_with(".ibd")),
            _ => disk::allocated_bytes(&disk::data_files(&data_dir, engine)?),
        };
        Ok(Self {
            memory: resident_bytes(server.process()?).unwrap_or(0),
            disk: disk::allocated_bytes(&files),
            data,
            undo,
            log,
        })
    }

    /// Describes memory and disk, in megabytes.
    #[must_use]
    pub fn megabytes(&self) -> String {
        format!(
            "{} MB memory, {} MB disk (data {}, undo {}, log {})",
            self.memory >> 20,
            self.disk >> 20,
            self.data >> 20,
            self.undo >> 20,
            self.log >> 20
        )
    }

    /// Returns the minimum of memory and disk of both, with this size's parts of the disk.
    #[must_use]
    pub fn or_less(self, before: Self) -> Self {
        Self {
            memory: self.memory.min(before.memory),
            disk: self.disk.min(before.disk),
            ..self
        }
    }
}

/// Bytes of a page in memory.
const PAGE: u64 = 16 << 10;

fn undo_pages(server: &Hosted) -> Result<u64> {
    let statement = "SHOW GLOBAL STATUS LIKE 'Peregrine_undo_pages'";
    let row: Option<(String, u64)> = server
        .connect(None)?
        .query_first(statement)
        .running(statement)?;
    Ok(row.map_or(0, |(_, pages)| pages))
}

/// The process's resident memory, in bytes (`VmRSS`).
#[must_use]
pub fn resident_bytes(process: Process) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{}/status", process.pid)).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}
