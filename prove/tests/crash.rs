//! A process with the library is killed repeatedly: no acknowledged change is lost.

use assert_cmd::Command;
use predicates::str::{contains, starts_with};

#[test]
fn what_a_killed_process_acknowledged_is_there() {
    let dir = tempfile::tempdir().expect("a directory");
    let rounds = dir.path().join("rounds");
    Command::new(assert_cmd::cargo::cargo_bin!("peregrine-prove"))
        .args([
            "crash",
            "--target",
            "library",
            "--kills",
            "12",
            "--threads",
            "3",
            "--dir",
        ])
        .arg(&rounds)
        .assert()
        .success()
        .stdout(starts_with("held: the library, 12 kills"));
    assert!(!rounds.exists(), "kept though nothing was wrong");
}

#[test]
fn a_directory_that_exists_is_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    Command::new(assert_cmd::cargo::cargo_bin!("peregrine-prove"))
        .args(["crash", "--target", "library", "--dir"])
        .arg(dir.path())
        .assert()
        .failure()
        .stderr(contains("exists already"));
}
