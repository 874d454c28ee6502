//! Names go downwards only: no files, and no folders, name each other in a cycle.

use std::collections::BTreeSet;
use std::path::Path;

use peregrine_layers::{cycles, Crate, Reference};

/// The first folder of a file, or a file outside all folders without its ending: `read/rows.rs` and `read.rs` are `read`.
fn folder(file: &str) -> String {
    let first = file.split('/').next().unwrap_or(file);
    first.trim_end_matches(".rs").to_string()
}

/// A file with those of its submodules: `read/cursor.rs` and `read/cursor/moving.rs` are `read/cursor`.
fn family(file: &str) -> String {
    let name = file.trim_end_matches(".rs");
    name.split('/').take(2).collect::<Vec<_>>().join("/")
}

fn check(krate: &str, least: usize) {
    let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let references = Crate::read(&checkout.join(krate).join("src"))
        .unwrap()
        .references();
    assert!(references.len() > least, "{} names", references.len());
    has_no_cycle(&references, str::to_string);
    has_no_cycle(&references, family);
    has_no_cycle(&references, folder);
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
    check("engine", 2_000);
}

#[test]
fn the_c_interface_has_no_cycle() {
    check("mariadb/capi", 150);
}

#[test]
fn cycles_are_found_and_names_are_followed_to_their_files() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/example");
    let references = Crate::read(&src).unwrap().references();
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
