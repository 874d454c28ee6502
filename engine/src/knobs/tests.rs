use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use super::draw::{asked, values, Asked};
use super::table::TABLE;

#[test]
fn every_default_is_in_its_range() {
    for knob in TABLE {
        assert!(
            knob.least <= knob.default && knob.default <= knob.most,
            "{knob:?}"
        );
    }
    let names: BTreeSet<_> = TABLE.iter().map(|knob| knob.name).collect();
    assert_eq!(names.len(), TABLE.len(), "two knobs of one name");
}

#[test]
fn drawn_values_are_in_their_ranges_and_the_same_for_a_seed() {
    let mut seen = vec![BTreeSet::new(); TABLE.len()];
    for seed in 0..200 {
        let drawn = values(TABLE, seed);
        assert_eq!(drawn, values(TABLE, seed));
        for ((knob, value), seen) in TABLE.iter().zip(&drawn).zip(&mut seen) {
            assert!(knob.least <= *value && *value <= knob.most, "{knob:?}");
            seen.insert(*value);
        }
    }
    for (knob, seen) in TABLE.iter().zip(&seen) {
        let both = seen.contains(&knob.default) && seen.contains(&knob.least);
        assert!(both, "{knob:?} is never shaken: {seen:?}");
    }
}

#[test]
fn a_seed_and_single_knobs_can_be_asked_for() {
    let is = |seed, single| Ok(Asked { seed, single });
    assert_eq!(asked(""), is(None, vec![]));
    assert_eq!(asked("7"), is(Some(7), vec![]));
    assert_eq!(
        asked("7, purge_step=1"),
        is(Some(7), vec![("purge_step", 1)])
    );
    assert_eq!(asked(",purge_step=1"), is(None, vec![("purge_step", 1)]));
    assert!(asked("x").is_err() && asked("7,purge_step").is_err() && asked("7,a=b").is_err());
}

/// The text of the document, generated from the table.
fn document() -> String {
    let mut text = String::from(
        "# Knobs\n\n\
         The tuning constants of the engine. Each changes when or how something is done, and never a format or an answer. In \
         ordinary builds they are constants; a build with the feature `shaken` draws each from its range, from a printed \
         seed. Times are in microseconds. This document is made from `engine/src/knobs/table.rs` by `make knobs`.\n\n\
         | knob | default | unit | range | why |\n|---|---|---|---|---|\n",
    );
    for knob in TABLE {
        let why = knob.why.trim();
        writeln!(
            text,
            "| `{}` | {} | {} | {} to {} | {why} |",
            knob.name, knob.default, knob.unit, knob.least, knob.most
        )
        .unwrap();
    }
    text
}

/// With `PEREGRINE_WRITE_DOCUMENTS` in the environment, writes the document anew (`make knobs`).
#[test]
fn the_document_says_what_the_table_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/knobs.md");
    if std::env::var_os("PEREGRINE_WRITE_DOCUMENTS").is_some() {
        std::fs::write(&path, document()).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap();
    assert!(found == document(), "docs/knobs.md is old: make knobs");
}

/// The numbers that a source file declares outside its tests.
fn numbers(source: &str) -> impl Iterator<Item = &str> {
    let types = [
        "usize", "u64", "u32", "u16", "u8", "i64", "i32", "f64", "f32", "Duration",
    ];
    let code = source
        .lines()
        .take_while(|line| !(line.starts_with("mod ") && line.ends_with("tests {")));
    code.filter_map(move |line| {
        let line = line.trim_start();
        let line = line.strip_prefix("pub").map_or(line, |rest| {
            let rest = rest.trim_start();
            let visibility = rest
                .strip_prefix('(')
                .and_then(|rest| rest.split_once(") "));
            visibility.map_or(rest, |(_, rest)| rest)
        });
        let (name, rest) = line.strip_prefix("const ")?.split_once(": ")?;
        let (kind, _) = rest.split_once(" =")?;
        types.contains(&kind).then_some(name)
    })
}

fn source_files(dir: &Path, found: &mut Vec<std::path::PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        let is_test = name == "tests" || name.ends_with("_tests");
        if is_test || ["fuzz_entry", "simulated", "shaken", "knobs"].contains(&name) {
            continue;
        }
        match path.is_dir() {
            true => source_files(&path, found),
            false => found.push(path),
        }
    }
}

/// A new number must become a knob, or `fixed.txt` must say why it is none.
#[test]
fn a_number_is_a_knob_or_says_why_it_is_none() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut fixed = BTreeSet::new();
    for line in include_str!("fixed.txt").lines() {
        if !line.starts_with('#') {
            let mut words = line.split(' ');
            let (Some(_reason), Some(file)) = (words.next(), words.next()) else {
                panic!("{line}: no reason and file");
            };
            fixed.extend(words.map(|name| (file.to_owned(), name.to_owned())));
        }
    }
    let mut files = Vec::new();
    for part in ["engine/src", "mariadb/capi/src"] {
        source_files(&root.join(part), &mut files);
    }
    let mut there = BTreeSet::new();
    for path in files {
        let source = std::fs::read_to_string(&path).unwrap();
        let file = path.strip_prefix(&root).unwrap().to_str().unwrap();
        there.extend(numbers(&source).map(|name| (file.to_owned(), name.to_owned())));
    }
    let neither: Vec<_> = there.difference(&fixed).collect();
    assert!(
        neither.is_empty(),
        "no knobs, without a reason: {neither:?}"
    );
    let gone: Vec<_> = fixed.difference(&there).collect();
    assert!(gone.is_empty(), "not there any more: {gone:?}");
}
