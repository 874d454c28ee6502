//! Disks that are nearly full.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use peregrine::os::simulated::SimulatedOs;
use peregrine::os::{Os, RealOs};

use peregrine_harness::error::{HarnessError, Result};

/// The place of the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A simulated disk with a limited number of bytes.
    Simulated,
    /// A separate file system in memory.
    Tmpfs,
    /// A separate file system in a file.
    Ext4,
}

/// The size of a separate file system, in bytes.
const SIZE: u64 = 96 << 20;

/// A disk for one database.
pub enum Disk {
    /// A disk in this process's memory.
    Simulated(SimulatedOs),
    /// A file system; dropping it unmounts it.
    Mounted(Mount),
}

/// A separate, mounted file system.
pub struct Mount {
    place: PathBuf,
    image: Option<PathBuf>,
}

fn command(program: &str, arguments: &[&std::ffi::OsStr]) -> Result<()> {
    let failed = |what: String| HarnessError::Usage(format!("{program}: {what}"));
    let output = Command::new(program)
        .args(arguments)
        .output()
        .map_err(|error| failed(error.to_string()))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(failed(
            String::from_utf8_lossy(&output.stderr).trim().into(),
        )),
    }
}

fn io(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> HarnessError {
    let path = path.to_owned();
    move |source| HarnessError::Io {
        action,
        path,
        source,
    }
}

impl Mount {
    fn new(kind: Kind, scratch: &Path) -> Result<Mount> {
        let place = scratch.join("disk");
        std::fs::create_dir_all(&place).map_err(io("cannot create", &place))?;
        let image = scratch.join("image");
        let mount = Mount {
            place: place.clone(),
            image: (kind == Kind::Ext4).then(|| image.clone()),
        };
        if kind == Kind::Tmpfs {
            let size = format!("size={SIZE},mode=700");
            let arguments = ["-t", "tmpfs", "-o", &size, "tmpfs"].map(AsRef::as_ref);
            command("mount", &[&arguments[..], &[place.as_os_str()]].concat())?;
            return Ok(mount);
        }
        let file = std::fs::File::create(&image).map_err(io("cannot create", &image))?;
        file.set_len(SIZE).map_err(io("cannot extend", &image))?;
        command(
            "mkfs.ext4",
            &["-q".as_ref(), "-F".as_ref(), image.as_os_str()],
        )?;
        let loops = ["-o", "loop"].map(AsRef::as_ref);
        let places = [image.as_os_str(), place.as_os_str()];
        command("mount", &[loops, places].concat())?;
        Ok(mount)
    }

    /// Fills the disk with a file, so that `free` bytes remain.
    fn leave(&self, free: u64) -> Result<()> {
        let path = self.place.join("filler");
        let file = std::fs::File::create(&path).map_err(io("cannot create", &path))?;
        let about = rustix::fs::statvfs(&self.place)
            .map_err(|errno| io("cannot ask about", &self.place)(errno.into()))?;
        let there = about.f_bavail * about.f_frsize;
        if there <= free {
            return Ok(());
        }
        rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, there - free)
            .map_err(|errno| io("cannot extend", &path)(errno.into()))
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        if let Err(error) = command("umount", &[self.place.as_os_str()]) {
            eprintln!("{error}");
            return;
        }
        if let Some(Err(error)) = self.image.as_ref().map(std::fs::remove_file) {
            eprintln!("cannot remove the image of a file system: {error}");
        }
    }
}

impl Disk {
    /// Creates an empty disk; mounting a file system below `scratch` needs privileges.
    ///
    /// # Errors
    /// [`HarnessError::Usage`] with the system's message, if no file system can be mounted.
    pub fn new(kind: Kind, seed: u64, scratch: &Path) -> Result<Disk> {
        Ok(match kind {
            Kind::Simulated => Disk::Simulated(SimulatedOs::new(seed)),
            kind => Disk::Mounted(Mount::new(kind, scratch)?),
        })
    }

    /// Returns the operating system for a database on this disk.
    #[must_use]
    pub fn os(&self) -> Arc<dyn Os> {
        match self {
            Disk::Simulated(os) => Arc::new(os.clone()),
            Disk::Mounted(_) => RealOs::new(),
        }
    }

    /// Returns the database's directory.
    #[must_use]
    pub fn dir(&self) -> PathBuf {
        match self {
            Disk::Simulated(_) => PathBuf::from("/db"),
            Disk::Mounted(mount) => mount.place.join("db"),
        }
    }

    /// Leaves only `free` bytes of the disk free.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn leave(&self, free: u64) -> Result<()> {
        match self {
            Disk::Simulated(os) => {
                os.set_capacity(Some(os.used() + free));
                Ok(())
            }
            Disk::Mounted(mount) => mount.leave(free),
        }
    }

    /// Returns the disk as a loss of power would leave it, if the disk is simulated.
    #[must_use]
    pub fn crashed(&self, seed: u64) -> Option<Arc<dyn Os>> {
        match self {
            Disk::Simulated(os) => Some(Arc::new(os.crash(seed))),
            Disk::Mounted(_) => None,
        }
    }
}
