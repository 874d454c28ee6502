//! Calls go downwards only.

use std::collections::BTreeSet;
use std::path::Path;

use peregrine_layers::{knots, Crate, Knot, Wire};

/// The first folder of a file, or a file outside all folders without its ending: `table/rows.rs` and `table.rs` are `table`.
fn folder(file: &str) -> String {
    let first = file.split('/').next().unwrap_or(file);
    first.trim_end_matches(".rs").to_string()
}

/// Circles that are not cut yet: a line each in `knots.txt`.
fn known(krate: &str) -> BTreeSet<Knot> {
    let lines = include_str!("../knots.txt").lines();
    let knots = lines.filter_map(|line| line.strip_prefix(krate)?.strip_prefix(": "));
    knots
        .map(|files| files.split(' ').map(str::to_string).collect())
        .collect()
}

fn check(krate: &str) {
    let src = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("..")
        .join(krate)
        .join("src");
    let wires = Crate::read(&src).unwrap().wires();
    assert!(wires.len() > 20, "{} wires", wires.len());
    compare(&wires, &known(krate), str::to_string);
    compare(&wires, &known(&format!("{krate}, folders")), folder);
}

fn compare(wires: &BTreeSet<Wire>, known: &BTreeSet<Knot>, of: fn(&str) -> String) {
    let found = knots(wires, of);
    let mut told = String::new();
    for knot in found.symmetric_difference(known) {
        let is = match known.contains(knot) {
            true => "is not there any more",
            false => "is a circle",
        };
        told += &format!("{knot:?} {is}\n");
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
fn files_of_the_engine_name_each_other_downwards_only() {
    check("engine");
}

#[test]
fn files_of_the_boundary_name_each_other_downwards_only() {
    check("boundary");
}
