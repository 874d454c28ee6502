//! Names go downwards only: no files, and no folders, name each other in a circle.

use std::collections::BTreeSet;
use std::path::Path;

use peregrine_layers::{knots, Crate, Wire};

/// The first folder of a file, or a file outside all folders without its ending: `table/rows.rs` and `table.rs` are `table`.
fn folder(file: &str) -> String {
    let first = file.split('/').next().unwrap_or(file);
    first.trim_end_matches(".rs").to_string()
}

/// A file with those of its submodules: `table/cursor.rs` and `table/cursor/moving.rs` are `table/cursor`.
fn family(file: &str) -> String {
    let name = file.trim_end_matches(".rs");
    name.split('/').take(2).collect::<Vec<_>>().join("/")
}

fn check(krate: &str, least: usize) {
    let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let wires = Crate::read(&checkout.join(krate).join("src"))
        .unwrap()
        .wires();
    assert!(wires.len() > least, "{} names", wires.len());
    has_no_circle(&wires, str::to_string);
    has_no_circle(&wires, family);
    has_no_circle(&wires, folder);
}

fn has_no_circle(wires: &BTreeSet<Wire>, of: fn(&str) -> String) {
    let mut told = String::new();
    for knot in knots(wires, of) {
        told += &format!("{knot:?} is a circle\n");
        for wire in wires {
            let (from, to) = (of(&wire.from), of(&wire.to));
            if from != to && knot.contains(&from) && knot.contains(&to) {
                told += &format!("  {} names {} of {}\n", wire.from, wire.name, wire.to);
            }
        }
    }
    assert!(told.is_empty(), "{told}");
}

#[test]
fn the_engine_has_no_circle() {
    check("engine", 2_000);
}

#[test]
fn the_boundary_has_no_circle() {
    check("boundary", 150);
}

#[test]
fn circles_are_found_and_names_are_followed_to_their_files() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/example");
    let wires = Crate::read(&src).unwrap().wires();
    let told: Vec<_> = wires
        .iter()
        .map(|wire| format!("{} {} {}", wire.from, wire.name, wire.to))
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
    let files: Vec<_> = knots(&wires, str::to_string).into_iter().collect();
    assert_eq!(files, [["high/mod.rs", "low.rs"].map(String::from).into()]);
    let folders: Vec<_> = knots(&wires, folder).into_iter().collect();
    assert_eq!(folders, [["high", "low"].map(String::from).into()]);
}
