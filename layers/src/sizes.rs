//! Files that are too long, and folders with too many files.

use std::fs;
use std::io;
use std::path::Path;

/// Returns the files and folders in `folder` that exceed the limits.
///
/// # Errors
/// Those of reading the files.
pub fn too_large(folder: &Path, most_lines: usize, most_files: usize) -> io::Result<Vec<String>> {
    let mut told = Vec::new();
    look(folder, most_lines, most_files, &mut told)?;
    told.sort();
    Ok(told)
}

fn look(
    folder: &Path,
    most_lines: usize,
    most_files: usize,
    told: &mut Vec<String>,
) -> io::Result<()> {
    let mut files = 0;
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            look(&path, most_lines, most_files, told)?;
        } else if is_source(&path) {
            files += 1;
            let lines = fs::read_to_string(&path)?.lines().count();
            if lines > most_lines {
                told.push(format!("{}: {lines} lines", path.display()));
            }
        }
    }
    if files > most_files {
        told.push(format!("{}: {files} files", folder.display()));
    }
    Ok(())
}

/// Returns whether a file is source in Rust, C++ or C.
fn is_source(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    extension.is_some_and(|extension| ["rs", "cc", "h"].contains(&extension))
}
