//! The server's socket: its path, and the options to connect to it.
//!
//! A Unix socket's path may have 107 bytes, which a server directory deep in a file system can exceed. Such a server
//! gets its socket in a short private directory under the temporary directory. The server's state file has the path.

use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use mysql::OptsBuilder;

use crate::error::{HarnessError, PathContext, Result};

/// The maximum length of a socket's path, in bytes.
const LONGEST: usize = 107;

/// Returns the socket's path for the server in `dir`, and prepares its directory.
///
/// # Errors
/// When a short directory is needed and can't be created, or belongs to another user.
pub fn prepare(dir: &Path) -> Result<PathBuf> {
    let near = dir.join("mariadb.sock");
    if near.as_os_str().as_bytes().len() <= LONGEST {
        return Ok(near);
    }
    let name = format!(
        "peregrine-{:016x}",
        xxhash_rust::xxh3::xxh3_64(dir.as_os_str().as_bytes())
    );
    let short = std::env::temp_dir().join(name);
    match std::fs::DirBuilder::new().mode(0o700).create(&short) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
        other => other.at("cannot create the socket's directory", &short)?,
    }
    let about = std::fs::symlink_metadata(&short).at("cannot look at", &short)?;
    let ours = about.is_dir()
        && about.uid() == rustix::process::geteuid().as_raw()
        && about.permissions().mode() & 0o077 == 0;
    if !ours {
        return Err(HarnessError::Server(format!(
            "the socket's directory {} is not a private directory of this user",
            short.display()
        )));
    }
    let socket = short.join("mariadb.sock");
    if socket.as_os_str().as_bytes().len() > LONGEST {
        return Err(HarnessError::Server(format!(
            "no socket path of at most {LONGEST} bytes can be had: {} is too deep, and so is the temporary \
             directory {}; set TMPDIR to a short one",
            dir.display(),
            std::env::temp_dir().display()
        )));
    }
    Ok(socket)
}

/// Returns the options to connect to a private server as its administrator.
#[must_use]
pub fn options(socket: &Path) -> OptsBuilder {
    OptsBuilder::new()
        .socket(Some(socket.to_string_lossy().into_owned()))
        .user(Some("root"))
        .prefer_socket(true)
}

/// Removes the socket and its short directory, if it has one, after the server has ended.
pub fn clean_up(dir: &Path, socket: &Path) {
    // Both may be gone already.
    let _ = std::fs::remove_file(socket);
    if let Some(parent) = socket.parent().filter(|parent| *parent != dir) {
        let _ = std::fs::remove_dir(parent);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deep_directory_gets_a_short_private_socket() {
        let deep = PathBuf::from("/").join("a-rather-deep-directory/".repeat(8));
        let socket = prepare(&deep).expect("a socket path");
        assert!(socket.as_os_str().as_bytes().len() <= LONGEST);
        let parent = socket.parent().expect("a directory");
        let mode = std::fs::metadata(parent)
            .expect("there")
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o700);
        assert_eq!(prepare(&deep).expect("again"), socket);
        clean_up(&deep, &socket);
        assert!(!parent.exists());
    }

    #[test]
    fn a_near_directory_keeps_its_socket() {
        assert_eq!(
            prepare(Path::new("/srv/x")).expect("a path"),
            Path::new("/srv/x/mariadb.sock")
        );
    }
}
