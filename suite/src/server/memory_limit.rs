//! A hard limit on the memory of a server.
//!
//! It is that of a control group of its own, which the kernel enforces by killing: what counts is the
//! memory that is there, of which the file system's cache is given up first. (Limits of a process
//! count what it has reserved, far more than it uses.)

use std::fs;
use std::path::{Path, PathBuf};

use super::process::Process;
use crate::error::{PathContext, Result};

/// Where control groups are mounted.
const MOUNT: &str = "/sys/fs/cgroup";

/// A limit, ready to be put on a process; the control group goes when this is dropped.
#[derive(Debug)]
pub struct MemoryLimit {
    /// Bytes.
    pub bytes: u64,
    /// The control group.
    dir: PathBuf,
    /// The file in which it counts whom the kernel has killed.
    kills: &'static str,
}

impl MemoryLimit {
    /// A limit of so many bytes; `None` where no control group can be made, which needs rights.
    #[must_use]
    pub fn new(bytes: u64) -> Option<Self> {
        let (dir, kills) = first_version(bytes)
            .map(|dir| (dir, "memory.oom_control"))
            .or_else(|| Some((second_version(bytes)?, "memory.events")))?;
        Some(Self { bytes, dir, kills })
    }

    /// Puts the limit on a process that has just been started.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn apply(&self, process: Process) -> Result<()> {
        let file = self.dir.join("cgroup.procs");
        fs::write(&file, process.pid.to_string()).at("cannot write", &file)
    }

    /// How often the kernel has killed a process for the limit.
    #[must_use]
    pub fn kills(&self) -> u64 {
        let text = fs::read_to_string(self.dir.join(self.kills)).unwrap_or_default();
        let kills = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
        kills.and_then(|n| n.trim().parse().ok()).unwrap_or(0)
    }
}

impl Drop for MemoryLimit {
    fn drop(&mut self) {
        // Refused while a process is in it: then it is left behind, empty soon.
        if let Err(error) = fs::remove_dir(&self.dir) {
            eprintln!("peregrine: {} stays: {error}", self.dir.display());
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
