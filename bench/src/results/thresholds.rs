//! The thresholds that an engine's figures must reach: a small TOML file.
//!
//! ```toml
//! engine = "peregrine"
//! baseline = "innodb"
//! geometric_mean = 2.0               # of the ratios to the baseline over all cells
//! best_of = ["innodb", "myisam"]     # every cell at least as fast as the best of these
//! rising_to = "cores"                # each step of threads faster than the one before, up to so many
//!
//! [minimum]                            # the ratio to the baseline, by query
//! READ_FTS = 20.0
//! ```

use std::collections::BTreeMap;

use crate::workload::document::{parse, Complaints, Node, Section};
use crate::workload::problem::Problems;
use peregrine_harness::engines::Engine;
use peregrine_harness::error::{HarnessError, Result};

/// The thresholds of a file.
#[derive(Debug, Clone, PartialEq)]
pub struct Thresholds {
    /// The engine whose figures are judged.
    pub engine: Engine,
    /// The engine that `minimum` and `geometric_mean` compare it with.
    pub baseline: Engine,
    /// For each query, the minimum ratio to the baseline of each of its cells.
    pub minimum: BTreeMap<String, f64>,
    /// The minimum geometric mean of the ratios to the baseline over all cells.
    pub geometric_mean: Option<f64>,
    /// In every cell, the engine must be at least as fast as the best of these engines.
    pub best_of: Vec<Engine>,
    /// Whether figures must rise with the number of threads, up to the number of processors.
    pub rising: bool,
}

impl Thresholds {
    /// Reads a file; `file` is its name for messages.
    ///
    /// # Errors
    /// [`HarnessError::Workload`], which lists all problems.
    pub fn read(text: &str, file: &str) -> Result<Self> {
        let complaints = Complaints::new(text);
        let thresholds = parse(text, &complaints).and_then(|document| {
            whole(Section::new(
                document.get_ref(),
                0,
                "a file of thresholds",
                &complaints,
            ))
        });
        let all = complaints.into_problems();
        match thresholds {
            Some(thresholds) if all.is_empty() => Ok(thresholds),
            _ => {
                let file = file.to_owned();
                Err(HarnessError::Workload(Problems { file, all }.to_string()))
            }
        }
    }
}

fn whole(mut file: Section<'_, '_>) -> Option<Thresholds> {
    let own = file.need("engine").and_then(|node| engine(&node));
    let baseline = match file.take("baseline") {
        None => Some(Engine::InnoDb),
        Some(node) => engine(&node),
    };
    let geometric_mean = file
        .take("geometric_mean")
        .map(|node| ratio(&node, "'geometric_mean'"));
    let best_of = file.take("best_of").map(|node| {
        let names = node.array("'best_of'")?;
        let engines: Vec<Option<Engine>> = names.iter().map(engine).collect();
        engines.into_iter().collect::<Option<Vec<Engine>>>()
    });
    let rising = file.take("rising_to").map(|node| {
        let known = node.text("'rising_to'")?.text == "cores";
        if !known {
            node.complain("'rising_to' is \"cores\"");
        }
        known.then_some(true)
    });
    let minimum = file.take("minimum").map(|node| {
        let section = node.section("'minimum'")?;
        let read = section.entries().into_iter().map(|(query, node)| {
            let what = format!("the threshold of {}", query.text);
            Some((query.text.to_owned(), ratio(&node, &what)?))
        });
        let read: Vec<Option<(String, f64)>> = read.collect();
        read.into_iter().collect::<Option<BTreeMap<String, f64>>>()
    });
    if geometric_mean.is_none() && best_of.is_none() && rising.is_none() && minimum.is_none() {
        file.complain(
            "a file of thresholds needs [minimum], 'geometric_mean', 'best_of' or 'rising_to'",
        );
    }
    file.end();
    Some(Thresholds {
        engine: own?,
        baseline: baseline?,
        minimum: minimum.unwrap_or(Some(BTreeMap::new()))?,
        geometric_mean: match geometric_mean {
            None => None,
            Some(mean) => Some(mean?),
        },
        best_of: best_of.unwrap_or(Some(Vec::new()))?,
        rising: rising.unwrap_or(Some(false))?,
    })
}

fn engine(node: &Node<'_, '_>) -> Option<Engine> {
    let found = Engine::parse(node.text("an engine")?.text);
    if let Err(error) = &found {
        node.complain(error.to_string());
    }
    found.ok()
}

fn ratio(node: &Node<'_, '_>, what: &str) -> Option<f64> {
    let found = node
        .as_number()
        .filter(|ratio| ratio.is_finite() && *ratio > 0.0);
    if found.is_none() {
        node.complain(format!("{what} must be a number above 0, such as 1.5"));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "engine = \"peregrine\"\nbaseline = \"innodb\"\ngeometric_mean = 2\n\
                        best_of = [\"innodb\", \"aria\"]\nrising_to = \"cores\"\n[minimum]\nREAD_FTS = 1.5\n";

    #[test]
    fn a_right_file_is_understood() {
        let thresholds = Thresholds::read(FILE, "thresholds.toml").expect("right");
        let expected = Thresholds {
            engine: Engine::Peregrine,
            baseline: Engine::InnoDb,
            minimum: BTreeMap::from([("READ_FTS".to_owned(), 1.5)]),
            geometric_mean: Some(2.0),
            best_of: vec![Engine::InnoDb, Engine::Aria],
            rising: true,
        };
        assert_eq!(thresholds, expected);
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        for (right, wrong, place, told) in [
            (
                "\"peregrine\"",
                "\"falcon\"",
                "1:10",
                "unknown engine 'falcon'",
            ),
            ("engine = \"peregrine\"\n", "", "1:1", "no 'engine'"),
            ("mean = 2", "mean = 0", "3:18", "above 0"),
            ("\"aria\"", "3", "4:22", "must be a string"),
            ("\"cores\"", "\"16\"", "5:13", "\"cores\""),
            (
                "FTS = 1.5",
                "FTS = \"fast\"",
                "7:12",
                "the threshold of READ_FTS",
            ),
            ("[minimum]", "[most]", "6:2", "unknown key 'most'"),
        ] {
            let text = FILE.replace(right, wrong);
            assert_ne!(text, FILE, "{right}");
            let message = Thresholds::read(&text, "thresholds.toml")
                .expect_err("wrong")
                .to_string();
            assert!(
                message.contains(&format!("thresholds.toml:{place}: ")) && message.contains(told),
                "{wrong}: {message}"
            );
        }
        let message = Thresholds::read("engine = \"aria\"\n", "thresholds.toml")
            .expect_err("nothing is asked for")
            .to_string();
        assert!(message.contains("needs [minimum]"), "{message}");
    }

    #[test]
    fn the_files_of_the_proofs_are_right_and_name_queries_that_there_are() {
        let options = crate::workload::Options::default();
        let mut cells = Vec::new();
        for shipped in crate::workload::builtin::ALL {
            let workload = crate::workload::Workload::read(shipped.text, shipped.name, &options)
                .expect("a workload");
            cells.extend(workload.cells().into_iter().map(str::to_owned));
        }
        for (text, thresholds) in [
            (include_str!("../../../verify/reads.toml"), 13),
            (include_str!("../../../verify/reads-best.toml"), 0),
            (include_str!("../../../verify/join.toml"), 1),
        ] {
            let read = Thresholds::read(text, "a file of verify").expect("right");
            assert_eq!(read.minimum.len(), thresholds);
            assert!(read.minimum.keys().all(|query| cells.contains(query)));
        }
    }
}
