//! The disk space of an engine's tables.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use peregrine_harness::engines::Engine;
use peregrine_harness::error::{PathContext, Result};

/// The unit in which the file system counts allocated space, in bytes.
const BLOCK: u64 = 512;

/// Returns the files that hold an engine's data.
///
/// Leaves out the log of every engine, because a log's size is a setting.
///
/// # Errors
/// When a directory can't be read.
pub fn data_files(data_dir: &Path, engine: Engine) -> Result<Vec<PathBuf>> {
    let schema = data_dir.join(engine.schema());
    let mut files = Vec::new();
    match engine {
        Engine::InnoDb | Engine::MyIsam | Engine::Aria | Engine::Other(_) => {
            walk(&schema, &mut files)?;
        }
        // An embedded store has no files on a server.
        Engine::Embedded(_) => {}
        Engine::MyRocks => {
            walk(&data_dir.join("#rocksdb"), &mut files)?;
            files.retain(|file| file.extension().is_some_and(|extension| extension == "sst"));
        }
        Engine::Peregrine => {
            for name in ["peregrine", "#peregrine"] {
                walk(&data_dir.join(name), &mut files)?;
            }
            files.retain(|file| !file.components().any(|part| part.as_os_str() == "log"));
        }
    }
    Ok(files)
}

/// Returns the files of an engine's log; none when it has no log.
///
/// # Errors
/// When a directory can't be read.
pub fn log_files(data_dir: &Path, engine: Engine) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let (dirs, is_log): (&[&str], fn(&Path) -> bool) = match engine {
        Engine::InnoDb => (&[""], |file| begins(file, "ib_logfile")),
        Engine::Aria => (&[""], |file| begins(file, "aria_log")),
        Engine::MyIsam | Engine::Embedded(_) | Engine::Other(_) => (&[], |_| false),
        Engine::MyRocks => (&["#rocksdb"], |file| {
            file.extension().is_some_and(|extension| extension == "log")
        }),
        Engine::Peregrine => (&["peregrine/log", "#peregrine/log"], |_| true),
    };
    for dir in dirs {
        list(&data_dir.join(dir), &mut files)?;
    }
    files.retain(|file| is_log(file));
    Ok(files)
}

fn begins(file: &Path, name: &str) -> bool {
    file.file_name()
        .is_some_and(|own| own.to_string_lossy().starts_with(name))
}

/// Adds the files of a directory, without those of its subdirectories.
fn list(dir: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let mut below = Vec::new();
    walk(dir, &mut below)?;
    below.retain(|file| file.parent() == Some(dir));
    files.extend(below);
    Ok(())
}

/// Returns every file in a directory and its subdirectories.
///
/// # Errors
/// When a directory can't be read.
pub fn all_files(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    walk(dir, &mut files)?;
    Ok(files)
}

/// Bytes that the file system has allocated for the files.
///
/// A file with holes takes less than its length. A file that was removed meanwhile takes none.
#[must_use]
pub fn allocated_bytes(files: &[PathBuf]) -> u64 {
    files
        .iter()
        .filter_map(|file| file.metadata().ok())
        .map(|about| about.blocks() * BLOCK)
        .sum()
}

/// Syncs the files.
///
/// # Errors
/// When that fails.
pub fn sync(files: &[PathBuf]) -> Result<()> {
    for file in files {
        match std::fs::File::open(file) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            other => other
                .and_then(|open| open.sync_all())
                .at("cannot sync", file)?,
        }
    }
    Ok(())
}

fn walk(dir: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let entries = match std::fs::read_dir(dir) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        other => other.at("cannot read", dir)?,
    };
    for entry in entries {
        let entry = entry.at("cannot read", dir)?;
        let kind = match entry.file_type() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            other => other.at("cannot look at", &entry.path())?,
        };
        if kind.is_dir() {
            walk(&entry.path(), files)?;
        } else if kind.is_file() {
            files.push(entry.path());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_engine_is_charged_for_its_data_and_not_for_logs() {
        let dir = tempfile::tempdir().expect("a directory");
        let put = |name: &str, bytes: usize| {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("created");
            std::fs::write(path, vec![1_u8; bytes]).expect("written");
        };
        put("peregrine_bench_myisam/normal.MYD", 100_000);
        put("peregrine_bench_myisam/normal.MYI", 50_000);
        put("#rocksdb/000010.sst", 40_000);
        put("#rocksdb/000011.log", 900_000);
        put("peregrine/data", 30_000);
        put("peregrine/log/00000001", 900_000);
        put("ib_logfile0", 900_000);
        for (engine, bytes) in [
            (Engine::MyIsam, 150_000),
            (Engine::MyRocks, 40_000),
            (Engine::Peregrine, 30_000),
            (Engine::InnoDb, 0),
        ] {
            let logs = log_files(dir.path(), engine).expect("files");
            let lengths: u64 = logs
                .iter()
                .map(|f| f.metadata().expect("there").len())
                .sum();
            let has_log = u64::from(engine != Engine::MyIsam);
            assert_eq!(lengths, 900_000 * has_log, "{engine:?}");
            let files = data_files(dir.path(), engine).expect("files");
            let length: u64 = files
                .iter()
                .map(|f| f.metadata().expect("there").len())
                .sum();
            assert_eq!(length, bytes, "{engine:?}");
            sync(&files).expect("synced");
            let allocated = allocated_bytes(&files);
            assert!(
                allocated >= bytes && allocated <= bytes + 16_384 * 2,
                "{engine:?} {allocated}"
            );
        }
    }
}
