//! The inputs that mutations start from.

use std::collections::BTreeMap;
use std::path::Path;

use peregrine::fuzz_entry;

use super::files::Sound;
use crate::corruption::world;
use peregrine_harness::error::{HarnessError, PathContext, Result};

/// The number of inputs of each target that a new corpus has.
const OF_A_TARGET: usize = 12;

/// Returns the inputs in a directory, in the order of their names; none if the directory is missing.
pub fn kept(dir: &Path) -> Result<Vec<Vec<u8>>> {
    if !dir.is_dir() {
        return Ok(Vec::new());
    }
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(dir).at("cannot read", dir)? {
        paths.push(entry.at("cannot read", dir)?.path());
    }
    paths.sort();
    let read = |path: &std::path::PathBuf| std::fs::read(path).at("cannot read", path);
    paths.iter().map(read).collect()
}

fn samples() -> Result<Vec<(&'static str, Vec<u8>)>> {
    let sound = Sound::make()?;
    fuzz_entry::samples(sound.disk.os(), world::dir())
        .map_err(|error| HarnessError::Server(error.to_string()))
}

/// Returns the inputs for a target from a small database.
pub fn of_a_database(target: &str) -> Result<Vec<Vec<u8>>> {
    let samples = samples()?.into_iter();
    Ok(samples
        .filter(|(of, _)| *of == target)
        .map(|(_, bytes)| bytes)
        .collect())
}

/// Writes some inputs of every target, each with a different number of bytes.
pub fn write(dir: &Path) -> Result<usize> {
    let mut by_target: BTreeMap<&str, BTreeMap<usize, Vec<u8>>> = BTreeMap::new();
    for (target, bytes) in samples()? {
        // A nearly empty page is as good an input as a full one.
        if bytes.len() <= 6000 {
            by_target
                .entry(target)
                .or_default()
                .insert(bytes.len(), bytes);
        }
    }
    let mut written = 0;
    for (target, inputs) in by_target {
        let dir = dir.join(target);
        std::fs::create_dir_all(&dir).at("cannot create", &dir)?;
        let step = inputs.len().div_ceil(OF_A_TARGET).max(1);
        for (len, bytes) in inputs.iter().step_by(step) {
            let path = dir.join(format!("{len:05}-bytes"));
            std::fs::write(&path, bytes).at("cannot write", &path)?;
            written += 1;
        }
    }
    Ok(written)
}
