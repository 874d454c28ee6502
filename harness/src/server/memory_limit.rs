//! A hard memory limit for a server.
//!
//! The limit is that of a control group of its own; the kernel enforces it by killing. It counts resident memory, and
//! the kernel frees the file system's cache first. (A process's own limits count the memory that it has reserved, far
//! more than it uses.)

use std::fs;
use std::path::{Path, PathBuf};

use super::process::Process;
use crate::error::{PathContext, Result};

/// The directory where control groups are mounted.
const MOUNT: &str = "/sys/fs/cgroup";

/// A limit, ready for a process.
///
/// Dropping it removes the control group.
#[derive(Debug)]
pub struct MemoryLimit {
    /// The limit in bytes.
    pub bytes: u64,
    /// The control group.
    dir: PathBuf,
    /// The file that counts the kernel's kills.
    kills: &'static str,
}

impl MemoryLimit {
    /// Creates a limit of this many bytes; `None` where no control group can be created, for lack of rights for
    /// instance.
    #[must_use]
    pub fn new(bytes: u64) -> Option<Self> {
        let (dir, kills) = first_version(bytes)
            .map(|dir| (dir, "memory.oom_control"))
            .or_else(|| Some((second_version(bytes)?, "memory.events")))?;
        Some(Self { bytes, dir, kills })
    }

    /// Puts a process that has just started under the limit.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn apply(&self, process: Process) -> Result<()> {
        let file = self.dir.join("cgroup.procs");
        fs::write(&file, process.pid.to_string()).at("cannot write", &file)
    }

    /// How often the kernel has killed a process because of the limit.
    #[must_use]
    pub fn kills(&self) -> u64 {
        let text = fs::read_to_string(self.dir.join(self.kills)).unwrap_or_default();
        let kills = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
        kills.and_then(|n| n.trim().parse().ok()).unwrap_or(0)
    }
}

impl Drop for MemoryLimit {
    fn drop(&mut self) {
        // The kernel refuses while a process is in the group. Then the group stays, and is soon empty.
        if let Err(error) = fs::remove_dir(&self.dir) {
            eprintln!("peregrine: {} stays: {error}", self.dir.display());
        }
    }
}

/// Creates a control group in the first of the directories where the program can create and limit one.
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
                // The group is of no use; try the next directory.
                let _ = fs::remove_dir(&dir);
                None
            }
        }
    })
}

/// Returns this program's own group: the path in the line of `/proc/self/cgroup` whose controllers match.
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
        // Limits memory and swap together, so that swapping doesn't help. The file is missing on a system without swap.
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
