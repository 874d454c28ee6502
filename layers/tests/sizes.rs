//! Limits on the lines of a file, and on the files of a folder.

use std::path::Path;

use peregrine_layers::too_large;

/// The most lines of a file, and the most files directly in a folder.
const MOST: (usize, usize) = (600, 15);

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn files_and_folders_stay_small() {
    for folder in [
        "engine", "mariadb", "harness", "bench", "prove", "cli", "loom", "layers",
    ] {
        let told = too_large(&here().join("..").join(folder), MOST.0, MOST.1).unwrap();
        assert!(told.is_empty(), "more than {MOST:?}: {told:#?}");
    }
}

#[test]
fn what_is_too_large_is_found() {
    let example = here().join("tests/example");
    let told = too_large(&example, 12, 1).unwrap();
    let told: Vec<_> = told
        .iter()
        .map(|told| told.replace(&example.display().to_string(), ""))
        .collect();
    assert_eq!(told, ["/high: 2 files", "/low.rs: 13 lines", ": 2 files"]);
}
