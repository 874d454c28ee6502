//! A directory that is named from the working directory.

use std::path::PathBuf;

use peregrine::Database;

use crate::schemas::options;

/// The working directory of the process may be another when the next file is made. (Tests beside this one share it, so
/// it is not changed here.)
#[test]
fn a_database_knows_its_directory_from_the_root() {
    let dir = tempfile::tempdir().unwrap();
    let depth = std::env::current_dir().unwrap().components().count();
    let mut relative: PathBuf = std::iter::repeat_n("..", depth - 1).collect();
    relative.push(dir.path().strip_prefix("/").unwrap());
    assert!(relative.is_relative());
    let db = Database::open(relative.join("db"), options()).unwrap();
    assert!(db.dir().is_absolute(), "{}", db.dir().display());
    db.close().unwrap();
    Database::open(dir.path().join("db"), options()).unwrap();
}
