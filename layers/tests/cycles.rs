//! Dependencies go downwards only: no files, and no folders, depend on each other in a cycle.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use peregrine_layers::{cycles, Crate, Reference};

/// Files above all layers.
const ROOF: [&str; 2] = ["lib.rs", "fuzz_entry.rs"];

/// The first folder of a file, or a file outside all folders without its ending: `read/rows.rs` and `read.rs` are
/// `read`.
fn folder(file: &str) -> String {
    let first = file.split('/').next().unwrap_or(file);
    first.trim_end_matches(".rs").to_string()
}

/// A file together with its submodules: `read/cursor.rs` and `read/cursor/moving.rs` are `read/cursor`.
fn family(file: &str) -> String {
    let name = file.trim_end_matches(".rs");
    name.split('/').take(2).collect::<Vec<_>>().join("/")
}

fn checkout() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn references(krate: &str, root: &str, least: usize) -> BTreeSet<Reference> {
    let src = checkout().join(krate).join("src");
    let references = Crate::read(&src, root).unwrap().references();
    assert!(references.len() > least, "{} names", references.len());
    references
}

fn check(references: &BTreeSet<Reference>) {
    has_no_cycle(references, str::to_string);
    has_no_cycle(references, family);
    has_no_cycle(references, folder);
}

fn has_no_cycle(references: &BTreeSet<Reference>, of: fn(&str) -> String) {
    let mut told = String::new();
    for cycle in cycles(references, of) {
        told += &format!("{cycle:?} is a cycle\n");
        for reference in references {
            let (from, to) = (of(&reference.from), of(&reference.to));
            if from != to && cycle.contains(&from) && cycle.contains(&to) {
                told += &format!(
                    "  {} names {} of {}\n",
                    reference.from, reference.name, reference.to
                );
            }
        }
    }
    assert!(told.is_empty(), "{told}");
}

#[test]
fn the_engine_has_no_cycle() {
    check(&references("engine", "lib.rs", 2_000));
}

#[test]
fn the_c_interface_has_no_cycle() {
    check(&references("mariadb/capi", "lib.rs", 150));
}

#[test]
fn measurements_and_proofs_have_no_cycle() {
    for (krate, root, least) in [
        ("harness", "lib.rs", 50),
        ("bench", "lib.rs", 500),
        ("bench", "main.rs", 15),
        ("prove", "lib.rs", 300),
        ("prove", "main.rs", 15),
        ("cli", "main.rs", 10),
    ] {
        check(&references(krate, root, least));
    }
}

/// Returns the folders in each line of the picture of the engine's layers, from the top.
fn lines_of_picture() -> Vec<Vec<String>> {
    let text = std::fs::read_to_string(checkout().join("ARCHITECTURE.md")).unwrap();
    let (_, after) = text.split_once("## Layers of the engine").unwrap();
    let picture = after.split("```").nth(1).unwrap();
    let lines = picture.lines().filter_map(|line| line.split('│').nth(1));
    let is_folder = |word: &&str| word.ends_with('/') || word.ends_with(".rs");
    let name = |word: &str| folder(word.trim_end_matches('/'));
    lines
        .map(|line| line.split(' ').filter(is_folder).map(name).collect())
        .collect()
}

#[test]
fn the_engine_names_only_what_the_picture_has_below() {
    let lines = lines_of_picture();
    assert!(lines.len() > 8, "{lines:?}");
    let line = |file: &str| {
        let folder = folder(file);
        lines.iter().position(|folders| folders.contains(&folder))
    };
    let references = references("engine", "lib.rs", 2_000);
    let mut told = String::new();
    for folder in lines.iter().flatten() {
        let is_used = |r: &Reference| self::folder(&r.from) == *folder;
        if !references.iter().any(is_used) {
            told += &format!("the picture has {folder}, which is not there\n");
        }
    }
    for reference in &references {
        let (from, to) = (&reference.from, &reference.to);
        let is_upwards = match (line(from), line(to)) {
            (Some(from_line), Some(to_line)) => from_line >= to_line && folder(from) != folder(to),
            // Files that the picture leaves out are below all layers, except those in `ROOF`.
            (None, Some(_)) => !ROOF.contains(&from.as_str()),
            _ => false,
        };
        if is_upwards {
            told += &format!("{from} names {} of {to}\n", reference.name);
        }
    }
    assert!(told.is_empty(), "upwards, or across:\n{told}");
}

#[test]
fn cycles_are_found_and_names_are_followed_to_their_files() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/example");
    let references = Crate::read(&src, "lib.rs").unwrap().references();
    let told: Vec<_> = references
        .iter()
        .map(|reference| format!("{} {} {}", reference.from, reference.name, reference.to))
        .collect();
    assert_eq!(
        told,
        [
            "high/mod.rs low::Made low.rs",
            "high/mod.rs low::passed_on low.rs",
            "low.rs high::below high/below.rs",
            "low.rs High high/mod.rs",
            "low.rs high high/mod.rs",
            "low.rs high::calls high/mod.rs",
        ]
    );
    let files: Vec<_> = cycles(&references, str::to_string).into_iter().collect();
    assert_eq!(files, [["high/mod.rs", "low.rs"].map(String::from).into()]);
    let folders: Vec<_> = cycles(&references, folder).into_iter().collect();
    assert_eq!(folders, [["high", "low"].map(String::from).into()]);
}

#[test]
fn impls_in_other_folders_are_found() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/example");
    let types = Crate::read(&src, "lib.rs").unwrap().implementations();
    let told: Vec<_> = types
        .iter()
        .map(|((file, name), files)| {
            let files: Vec<&str> = files.iter().map(String::as_str).collect();
            format!("{name} of {file}: {}", files.join(" "))
        })
        .collect();
    assert_eq!(told, ["Root of lib.rs: high/below.rs high/mod.rs lib.rs"]);
}

#[test]
fn impls_of_a_type_are_in_one_folder() {
    let src = checkout().join("engine/src");
    let types = Crate::read(&src, "lib.rs").unwrap().implementations();
    let mut told = String::new();
    assert!(types.len() > 200, "{} types", types.len());
    for ((defined, name), files) in &types {
        // Its operations on rows are where rows are read and written.
        if name == "Transaction" {
            let folders: BTreeSet<_> = files.iter().map(|file| folder(file)).collect();
            assert_eq!(
                folders,
                ["read", "session", "write"].map(String::from).into()
            );
            continue;
        }
        let folders: BTreeSet<_> = files.iter().map(|file| folder(file)).collect();
        if folders.len() > 1 {
            told += &format!("{name} of {defined}: {files:?}\n");
        }
    }
    assert!(told.is_empty(), "{told}");
}
