//! The answers of `peregrine prove` to wrong input: an error that names the allowed values.

use assert_cmd::Command;
use predicates::prelude::PredicateBooleanExt;
use predicates::str::contains;

/// The command, in a directory of its own and without a MariaDB.
fn peregrine(dir: &tempfile::TempDir) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("peregrine-prove"));
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
fn unknown_names_are_answered_with_the_known_ones() {
    refused(&["crash", "--engine", "falcon"], &["falcon", "peregrine"]);
    refused(
        &["crash", "--target", "disk"],
        &["disk", "server", "library"],
    );
    refused(&["fly"], &["fly", "crash", "power-loss", "histories"]);
    refused(&["crash", "--kills", "0"], &["--kills"]);
}

#[test]
fn a_kill_of_the_library_takes_no_options_of_servers() {
    refused(
        &["crash", "--engine", "sqlite"],
        &["unknown engine 'sqlite'", "peregrine"],
    );
    let library = ["crash", "--target", "library"];
    for more in [["--engine", "innodb"], ["--plugin", "p.so"], ["--", "-x"]] {
        let arguments = [&library[..], &more[..]].concat();
        refused(&arguments, &["--engine, --plugin"]);
    }
}

#[test]
fn no_plugin_says_what_to_build() {
    refused(
        &["crash", "--plugin", "nowhere.so"],
        &["nowhere.so", "make plugin"],
    );
}

#[test]
fn no_mariadb_says_what_to_install() {
    refused(
        &["crash", "--engine", "innodb", "--dir", "here"],
        &["no MariaDB was found", "make mariadb", "apt-get install"],
    );
}
