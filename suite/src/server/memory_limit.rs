//! A hard limit on the memory of a server.
//!
//! Best a control group of its own, whose limit the kernel enforces by killing: what counts is the
//! memory that is there, of which the file system's cache is given up first. Where none can be made,
//! a limit on the memory that the process may write to, which makes allocations fail instead.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::process::{prlimit, Pid, Resource, Rlimit};

use super::process::Process;
use crate::error::{PathContext, Result, SuiteError};

/// Where control groups are mounted.
const MOUNT: &str = "/sys/fs/cgroup";

/// A limit, ready to be put on a process; the control group goes when this is dropped.
#[derive(Debug)]
pub struct MemoryLimit {
    /// Bytes.
    pub bytes: u64,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    /// A control group of the first version.
    First(PathBuf),
    /// One of the second.
    Second(PathBuf),
    Data,
}

impl MemoryLimit {
    /// A limit of so many bytes, of the strongest kind that can be had.
    #[must_use]
    pub fn new(bytes: u64) -> Self {
        let kind = first_version(bytes)
            .map(Kind::First)
            .or_else(|| second_version(bytes).map(Kind::Second))
            .unwrap_or(Kind::Data);
        Self { bytes, kind }
    }

    /// Puts the limit on a process that has just been started.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn apply(&self, process: Process) -> Result<()> {
        match &self.kind {
            Kind::First(dir) | Kind::Second(dir) => {
                let file = dir.join("cgroup.procs");
                fs::write(&file, process.pid.to_string()).at("cannot write", &file)
            }
            Kind::Data => {
                let limit = Rlimit {
                    current: Some(self.bytes),
                    maximum: Some(self.bytes),
                };
                prlimit(Pid::from_raw(process.pid), Resource::Data, limit)
                    .map(drop)
                    .map_err(|error| {
                        SuiteError::Server(format!("no limit on the server's memory: {error}"))
                    })
            }
        }
    }

    /// What kind of limit it is.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self.kind {
            Kind::First(_) | Kind::Second(_) => "control group",
            Kind::Data => {
                "of data segments only: no control group could be made, which needs rights"
            }
        }
    }

    /// How often the kernel has killed a process for the limit.
    #[must_use]
    pub fn kills(&self) -> u64 {
        let (dir, file) = match &self.kind {
            Kind::First(dir) => (dir, "memory.oom_control"),
            Kind::Second(dir) => (dir, "memory.events"),
            Kind::Data => return 0,
        };
        let text = fs::read_to_string(dir.join(file)).unwrap_or_default();
        let kills = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
        kills.and_then(|n| n.trim().parse().ok()).unwrap_or(0)
    }
}

impl Drop for MemoryLimit {
    fn drop(&mut self) {
        if let Kind::First(dir) | Kind::Second(dir) = &self.kind {
            // Refused while a process is in it: then it is left behind, empty soon.
            if let Err(error) = fs::remove_dir(dir) {
                eprintln!("peregrine: {} stays: {error}", dir.display());
            }
        }
    }
}

/// A new control group below the first of the directories in which one can be made and limited.
fn make(
    above: impl IntoIterator<Item = PathBuf>,
    limit: impl Fn(&Path) -> std::io::Result<()>,
) -> Option<PathBuf> {
    let name = format!("peregrine-{}", std::process::id());
    above.into_iter().find_map(|above| {
        let dir = above.join(&name);
        fs::create_dir(&dir).ok()?;
        match limit(&dir) {
            Ok(()) => Some(dir),
            Err(_) => {
                // It is of no use; the next place is tried.
                let _ = fs::remove_dir(&dir);
                None
            }
        }
    })
}

/// This program's own group, as a line of `/proc/self/cgroup` that begins with one of these names.
fn own(is_it: impl Fn(&str) -> bool) -> Option<String> {
    let text = fs::read_to_string("/proc/self/cgroup").ok()?;
    text.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':');
        let controllers = fields.nth(1)?;
        let path = fields.next()?;
        is_it(controllers).then(|| path.trim_start_matches('/').to_owned())
    })
}

fn first_version(bytes: u64) -> Option<PathBuf> {
    let mount = Path::new(MOUNT).join("memory");
    let own = own(|controllers| controllers.split(',').any(|name| name == "memory"))?;
    make([mount.clone(), mount.join(own)], |dir| {
        fs::write(dir.join("memory.limit_in_bytes"), bytes.to_string())?;
        // Both together, so that swapping helps nothing. Not there without swap.
        let both = dir.join("memory.memsw.limit_in_bytes");
        if both.exists() {
            fs::write(both, bytes.to_string())?;
        }
        Ok(())
    })
}

fn second_version(bytes: u64) -> Option<PathBuf> {
    let mount = Path::new(MOUNT).to_path_buf();
    let own = own(str::is_empty)?;
    make([mount.join(own), mount], |dir| {
        fs::write(dir.join("memory.max"), bytes.to_string())?;
        let swap = dir.join("memory.swap.max");
        if swap.exists() {
            fs::write(swap, "0")?;
        }
        Ok(())
    })
}
