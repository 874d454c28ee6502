//! A short slice of random histories through the library.
//!
//! `peregrine prove histories` runs them at length.

use std::time::Duration;

use peregrine_harness::level::Level;
use peregrine_prove::histories::library::Library;
use peregrine_prove::histories::{
    Request, {self},
};

/// Few enough threads and transactions for a slow machine.
///
/// The number of transactions in the time does not matter.
fn request(level: Level, seed: u64) -> Request {
    Request {
        level,
        transactions: 6_000,
        duration: Some(Duration::from_secs(3)),
        seed,
        threads: 8,
        window: 2_000,
        crash_every: 2,
        stop_when_found: true,
    }
}

#[cfg(not(feature = "broken"))]
#[test]
fn every_level_keeps_its_word_also_through_crashes() {
    for level in &Level::ALL[1..] {
        let mut library = Library::new(*level, 1).expect("a database");
        let outcome =
            histories::run(&request(*level, 1), "library", &mut library, |_| ()).expect("it runs");
        assert!(outcome.held(), "{outcome}");
    }
}

/// The level that must notice a missing rule, and the anomalies by which it does.
#[cfg(feature = "broken")]
mod broken {
    use peregrine::IsolationFault;
    use peregrine_prove::histories::check::Violation;

    use super::*;

    /// Returns the violations that a missing rule leads to, at least one of which must be found, and a level that
    /// forbids them.
    fn expected(rule: IsolationFault) -> Option<(Level, &'static [Violation])> {
        use Violation as V;
        Some(match rule.name() {
            "skip_row_lock" => (Level::ReadCommitted, &[V::LostUpdate]),
            "skip_range_lock" => (
                Level::Serializable,
                &[V::WriteSkew, V::ReadSkew, V::Predicate],
            ),
            "skip_first_committer_check" => (Level::RepeatableRead, &[V::LostUpdate, V::ReadSkew]),
            "stale_snapshot" => (Level::RepeatableRead, &[V::StaleRead]),
            "dirty_read" => (
                Level::ReadCommitted,
                &[V::AbortedRead, V::DirtyRead, V::IntermediateRead],
            ),
            "overwrite_uncommitted" => (Level::ReadCommitted, &[V::DirtyWrite, V::LostUpdate]),
            _ => return None,
        })
    }

    /// Runs until the violation is found; on a slow machine, where transactions rarely conflict, that takes longer.
    #[test]
    fn every_rule_left_out_is_noticed() {
        for rule in IsolationFault::ALL {
            let (level, violations) = expected(rule)
                .unwrap_or_else(|| panic!("nobody says what {} leads to", rule.name()));
            let begun = std::time::Instant::now();
            let mut seed = 0;
            loop {
                seed += 1;
                let mut library = Library::broken(level, seed, rule).expect("a database");
                let request = Request {
                    crash_every: 0,
                    ..request(level, seed)
                };
                // A missing rule may also stop the engine through its own checks.
                let found = histories::run(&request, "library", &mut library, |_| ())
                    .map(|outcome| outcome.found.violations)
                    .unwrap_or_default();
                let caught: Vec<String> = violations
                    .iter()
                    .filter_map(|violation| {
                        let (count, _) = found.get(violation)?;
                        Some(format!("{count} times {violation}"))
                    })
                    .collect();
                if !caught.is_empty() {
                    println!(
                        "caught: {} at {}: {}",
                        rule.name(),
                        level.sql(),
                        caught.join(", ")
                    );
                    break;
                }
                assert!(
                    begun.elapsed() < Duration::from_secs(120),
                    "NOT CAUGHT: {} at {}: {found:#?}",
                    rule.name(),
                    level.sql()
                );
            }
        }
    }
}
