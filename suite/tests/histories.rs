//! Random histories through the library, a short slice of them: what `peregrine bench histories` does
//! at length.

use std::time::Duration;

use peregrine_suite::behaviour::level::Level;
use peregrine_suite::histories::library::Library;
use peregrine_suite::histories::{
    Request, {self},
};

/// Threads and transactions are few enough for a slow machine; how many come about in the time does not
/// matter.
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

/// Which levels must notice that a rule is left out, and by which anomaly.
#[cfg(feature = "broken")]
mod broken {
    use peregrine::IsolationFault;
    use peregrine_suite::histories::check::Violation;

    use super::*;

    /// The violations that a rule left out leads to, of which one at least must be found, and a level
    /// that promises otherwise.
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

    /// Until it is found; a machine so slow that transactions hardly meet takes longer.
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
                // A rule left out may also stop the engine by its own checks.
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
