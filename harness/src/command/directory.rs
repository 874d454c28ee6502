//! Directories for results.

use std::path::{Path, PathBuf};

use crate::error::{PathContext, Result};

/// Returns the directory given, or a new one under `bench` named by its purpose and the time.
///
/// # Errors
/// When it can't be made absolute.
pub fn new_directory(given: Option<&Path>, bench: &Path, purpose: &str) -> Result<PathBuf> {
    let dir = match given {
        Some(dir) => dir.to_path_buf(),
        None => {
            let now = jiff::Zoned::now().strftime("%Y%m%d-%H%M%S");
            bench.join(format!("{purpose}-{now}"))
        }
    };
    std::path::absolute(&dir).at("cannot resolve", &dir)
}
