//! A short slice of `peregrine prove fuzz` and of `peregrine prove bit-flips`, in a build that checks arithmetic: every
//! kept input and some thousand mutations.

use std::path::Path;
use std::time::Duration;

use peregrine_prove::corruption;
use peregrine_prove::fuzz::{
    Request, {self},
};

#[test]
fn hostile_input_is_refused_or_read() {
    for target in fuzz::targets() {
        let findings = tempfile::tempdir().unwrap();
        let outcome = fuzz::run(&Request {
            target,
            duration: Duration::from_secs(3600),
            executions: if target == fuzz::FILES { 150 } else { 3_000 },
            seed: 7,
            corpus: Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus"),
            findings: findings.path().to_owned(),
        })
        .unwrap();
        assert!(outcome.held(), "{outcome}: {:?}", outcome.findings);
        assert!(
            outcome.accepted > 0,
            "{outcome}: nothing gets past the first check"
        );
    }
}

#[test]
fn damage_is_found_and_does_not_spread() {
    let request = corruption::Request {
        samples: 0,
        planted: 1,
        seed: 3,
    };
    let outcome = corruption::run(&request, |_| {}).unwrap();
    assert!(outcome.held(), "{outcome}: {:#?}", outcome.wrong);
}
