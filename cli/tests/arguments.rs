//! The command's answers to wrong input: an error that names the allowed values.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use assert_cmd::Command;
use peregrine::{Database, Options};
use predicates::prelude::PredicateBooleanExt;
use predicates::str::contains;

/// The command, in a directory of its own and without a MariaDB.
fn peregrine(dir: &tempfile::TempDir) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("peregrine"));
    command
        .current_dir(dir.path())
        .env("MARIADB_BASEDIR", dir.path().join("no-mariadb"));
    command
}

fn refused(arguments: &[&str], names: &[&str]) {
    let dir = tempfile::tempdir().expect("a directory");
    let mut assertion = peregrine(&dir).args(arguments).assert().failure();
    for name in names {
        assertion = assertion.stderr(contains(*name));
    }
    assertion.stderr(contains("panicked").not());
}

#[test]
fn unknown_actions_are_answered_with_the_known_ones() {
    refused(
        &["fly"],
        &["fly", "server", "bench", "prove", "check", "dump"],
    );
}

#[test]
fn no_mariadb_says_what_to_install() {
    refused(
        &["server", "start", "--dir", "here"],
        &["no MariaDB was found", "make mariadb", "apt-get install"],
    );
}

#[test]
fn no_server_says_how_to_start_one() {
    let dir = tempfile::tempdir().expect("a directory");
    peregrine(&dir)
        .args(["server", "status", "--dir", "here"])
        .assert()
        .code(3)
        .stdout(contains("stopped"));
    peregrine(&dir)
        .args(["server", "sql", "--dir", "here", "SELECT 1"])
        .assert()
        .failure()
        .stderr(contains("peregrine server start"));
    peregrine(&dir)
        .args(["server", "stop", "--dir", "here"])
        .assert()
        .success()
        .stdout(contains("no server runs"));
}

#[test]
fn checking_what_is_no_database_is_an_error() {
    refused(&["check", "nothing-here"], &["nothing-here"]);
    refused(&["check"], &["DIR"]);
}

#[test]
fn an_option_that_there_is_not_is_told_beside_a_path_that_is_no_text() {
    let dir = tempfile::tempdir().expect("a directory");
    peregrine(&dir)
        .arg("check")
        .arg(OsStr::from_bytes(b"no-text-\xff"))
        .arg("--wrong")
        .assert()
        .code(2)
        .stderr(contains("--wrong"))
        .stderr(contains("The options of peregrine check: --help"));
}

#[test]
fn what_a_check_can_not_say_is_an_error() {
    let dir = tempfile::tempdir().expect("a directory");
    let database = Database::open(dir.path().join("here"), Options::default());
    database.and_then(Database::close).expect("made");
    peregrine(&dir)
        .args(["check", "here"])
        .assert()
        .success()
        .stdout(contains("no problem found"));
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full");
    let output = std::process::Command::new(assert_cmd::cargo::cargo_bin!("peregrine"))
        .args(["check", "here"])
        .current_dir(dir.path())
        .stdout(full.expect("a full device"))
        .output()
        .expect("run");
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains("cannot write standard output"), "{told}");
}

/// The command in a directory with a `peregrine-bench` that tells its arguments, or without one.
fn beside_another(dir: &tempfile::TempDir, with: bool) -> std::path::PathBuf {
    let program = dir.path().join("peregrine");
    std::fs::copy(assert_cmd::cargo::cargo_bin!("peregrine"), &program).expect("copied");
    if with {
        let other = dir.path().join("peregrine-bench");
        std::fs::write(&other, "#!/bin/sh\nprintf '<%s>' \"$@\"\nexit 7\n").expect("written");
        let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&other, executable).expect("executable");
    }
    program
}

#[test]
fn the_commands_beside_it_get_all_arguments() {
    let dir = tempfile::tempdir().expect("a directory");
    let program = beside_another(&dir, true);
    let link = dir.path().join("elsewhere");
    std::fs::create_dir(&link).expect("a directory");
    let link = link.join("p");
    std::os::unix::fs::symlink(&program, &link).expect("a link");
    let no_text = OsStr::from_bytes(b"x-\xff");
    for (arguments, told) in [
        (&["bench", "--help"][..], &b"<--help>"[..]),
        (&["bench", "-h"], b"<-h>"),
        (&["bench", "run", "--", "-x"], b"<run><--><-x>"),
        (&["help", "bench", "run"], b"<help><run>"),
        (&["help", "bench"], b"<help>"),
    ] {
        for program in [&program, &link] {
            let output = std::process::Command::new(program).args(arguments).output();
            let output = output.expect("run");
            assert_eq!(output.status.code(), Some(7), "{arguments:?}");
            assert_eq!(output.stdout, told, "{arguments:?}");
        }
    }
    let output = std::process::Command::new(&program)
        .args([OsStr::new("bench"), no_text])
        .output()
        .expect("run");
    assert_eq!(output.stdout, b"<x-\xff>");
}

#[test]
fn a_command_that_is_not_beside_it_is_named() {
    let dir = tempfile::tempdir().expect("a directory");
    let program = beside_another(&dir, false);
    Command::new(program)
        .args(["bench", "run"])
        .assert()
        .failure()
        .stderr(contains("peregrine-bench is not beside"))
        .stderr(contains("cargo build -p peregrine-bench"));
}
