//! Finds a MariaDB and the Peregrine plug-in.
//!
//! The environment names the server: `MARIADB_BASEDIR`, and the other [`NAMES`] for files in unusual places. Otherwise
//! the file `target/mariadb/current/env` names it. `make mariadb` writes this file; it has the same names as shell
//! assignments.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::{HarnessError, PathContext, Result};

/// The settings that describe a MariaDB, in the environment or in the `env` file.
pub const NAMES: [&str; 7] = [
    "MARIADB_BASEDIR",
    "MARIADB_SERVER",
    "MARIADB_CLIENT",
    "MARIADB_INSTALL_DB",
    "MARIADB_PLUGIN_DIR",
    "MARIADB_LIBRARY_PATH",
    "LD_LIBRARY_PATH",
];

/// The programs and directories of one MariaDB.
#[derive(Debug, Clone)]
pub struct Installation {
    /// The base directory (`--basedir`).
    pub basedir: PathBuf,
    /// The server program.
    pub server: PathBuf,
    /// The script that creates a data directory.
    pub install_db: PathBuf,
    /// The ordinary client, if there is one.
    pub client: Option<PathBuf>,
    /// The directory of the server's own plug-ins.
    pub plugin_dir: PathBuf,
    /// `LD_LIBRARY_PATH` for the programs, if they need one.
    pub library_path: Option<String>,
}

impl Installation {
    /// Finds the MariaDB named by the environment, or else the one under `target`.
    ///
    /// # Errors
    /// [`HarnessError::NoMariaDb`] when there is none, or when the named one is not complete.
    pub fn find(target: &Path) -> Result<Self> {
        let file = target.join("mariadb/current/env");
        let mut settings = if std::env::var_os("MARIADB_BASEDIR").is_none() && file.is_file() {
            let text = std::fs::read_to_string(&file).at("cannot read", &file)?;
            parse_env_file(&text)
        } else {
            BTreeMap::new()
        };
        for name in NAMES {
            if let Ok(value) = std::env::var(name) {
                settings.insert(name.to_owned(), value);
            }
        }
        settings.retain(|_, value| !value.is_empty());
        if !settings.contains_key("MARIADB_BASEDIR") {
            return Err(HarnessError::NoMariaDb {
                detail: format!(
                    " (MARIADB_BASEDIR is not set and {} does not name one)",
                    file.display()
                ),
            });
        }
        Self::from_settings(&settings)
    }

    /// Returns the MariaDB of the settings: `MARIADB_BASEDIR`, and the files that are in unusual places.
    fn from_settings(settings: &BTreeMap<String, String>) -> Result<Self> {
        let basedir = PathBuf::from(settings.get("MARIADB_BASEDIR").map_or("", String::as_str));
        let named = |name: &str| settings.get(name).map(PathBuf::from);
        let find = |name: &str, folders: &[&str], programs: &[&str]| {
            named(name)
                .into_iter()
                .chain(folders.iter().flat_map(|folder| {
                    let folder = basedir.join(folder);
                    programs.iter().map(move |program| folder.join(program))
                }))
                .find(|path| path.is_file())
        };
        let need = |found: Option<PathBuf>, what: &str| {
            found.ok_or_else(|| HarnessError::NoMariaDb {
                detail: format!(" ({} has no {what})", basedir.display()),
            })
        };
        let server = need(
            find(
                "MARIADB_SERVER",
                &["sbin", "bin", "libexec", "sql"],
                &["mariadbd", "mysqld"],
            ),
            "mariadbd",
        )?;
        let install_db = need(
            find(
                "MARIADB_INSTALL_DB",
                &["bin", "scripts"],
                &["mariadb-install-db", "mysql_install_db"],
            ),
            "mariadb-install-db",
        )?;
        let plugin_dir = named("MARIADB_PLUGIN_DIR").unwrap_or_else(|| {
            ["lib/mysql/plugin", "lib/plugin", "lib64/mysql/plugin"]
                .iter()
                .map(|folder| basedir.join(folder))
                .find(|path| path.is_dir())
                .unwrap_or_else(|| basedir.join("lib/mysql/plugin"))
        });
        Ok(Self {
            client: find("MARIADB_CLIENT", &["bin"], &["mariadb", "mysql"]),
            server,
            install_db,
            plugin_dir,
            library_path: settings
                .get("MARIADB_LIBRARY_PATH")
                .or_else(|| settings.get("LD_LIBRARY_PATH"))
                .cloned(),
            basedir,
        })
    }

    /// Returns a command for one of the programs, with the library path that it needs.
    #[must_use]
    pub fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        if let Some(path) = &self.library_path {
            command.env("LD_LIBRARY_PATH", path);
        }
        command
    }
}

/// Returns the directory for build outputs and data: the `target` directory of this program, or else `target` in the
/// current directory.
#[must_use]
pub fn target_directory() -> PathBuf {
    let from_program = std::env::current_exe().ok().and_then(|program| {
        program
            .ancestors()
            .find(|dir| dir.file_name().is_some_and(|name| name == "target"))
            .map(Path::to_path_buf)
    });
    from_program.unwrap_or_else(|| {
        std::env::current_dir()
            .unwrap_or_else(|_| PathBuf::from("."))
            .join("target")
    })
}

/// Returns the Peregrine plug-in: the given file, or else `target/plugin/ha_peregrine.so`.
///
/// # Errors
/// [`HarnessError::NoPlugin`] when the file does not exist.
pub fn find_plugin(target: &Path, given: Option<&Path>) -> Result<PathBuf> {
    let path = match given {
        Some(path) => path.to_path_buf(),
        None => target.join("plugin/ha_peregrine.so"),
    };
    if path.is_file() {
        std::path::absolute(&path).at("cannot resolve", &path)
    } else {
        Err(HarnessError::NoPlugin {
            looked_at: path.display().to_string(),
        })
    }
}

/// Parses `NAME=VALUE` lines as a shell does: allows `export` and quotes; `#` begins a comment line.
fn parse_env_file(text: &str) -> BTreeMap<String, String> {
    text.lines()
        .filter_map(|line| {
            let line = line.trim();
            let line = line.strip_prefix("export ").unwrap_or(line);
            if line.starts_with('#') {
                return None;
            }
            let (name, value) = line.split_once('=')?;
            let value = value.trim();
            let unquoted = ['"', '\'']
                .iter()
                .find_map(|quote| value.strip_prefix(*quote)?.strip_suffix(*quote))
                .unwrap_or(value);
            Some((name.trim().to_owned(), unquoted.to_owned()))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn env_file_is_read_as_a_shell_reads_it() {
        let parsed = parse_env_file(
            "# a comment\nexport MARIADB_BASEDIR=\"/opt/maria db/usr\"\nMARIADB_PLUGIN_DIR='/p'\n\nLD_LIBRARY_PATH=/a:/b\n",
        );
        assert_eq!(parsed["MARIADB_BASEDIR"], "/opt/maria db/usr");
        assert_eq!(parsed["MARIADB_PLUGIN_DIR"], "/p");
        assert_eq!(parsed["LD_LIBRARY_PATH"], "/a:/b");
        assert_eq!(parsed.len(), 3);
    }

    #[test]
    fn an_empty_base_directory_is_no_mariadb() {
        let empty = tempfile::tempdir().expect("a directory");
        let settings = BTreeMap::from([(
            "MARIADB_BASEDIR".to_owned(),
            empty.path().display().to_string(),
        )]);
        let error = Installation::from_settings(&settings).expect_err("nothing there");
        let message = error.to_string();
        assert!(message.contains("mariadbd"), "{message}");
        assert!(message.contains("make mariadb"), "{message}");
    }
}
