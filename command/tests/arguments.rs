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
fn a_running_server_is_named_by_its_url_and_left_as_it_is() {
    refused(
        &["bench", "run", "--url", "postgres://me@db/"],
        &["mysql://user:password@host:3306/", "?socket="],
    );
    refused(
        &["bench", "run", "--url", "mysql://me@db/shop"],
        &["'shop'", "schemas of its own"],
    );
    for (option, value) in [
        ("--cache", "1G"),
        ("--placement", "paired"),
        ("--plugin", "x.so"),
    ] {
        refused(
            &["bench", "run", "--url", "mysql://me@db/", option, value],
            &[option, "as it is"],
        );
    }
    refused(
        &[
            "bench",
            "run",
            "--url",
            "mysql://me@db/",
            "--engines",
            "a b",
        ],
        &["'a b'"],
    );
}

#[test]
fn cross_checks_say_what_they_need() {
    refused(
        &["bench", "sysbench", "--protocol", "binary"],
        &["'binary'", "text, prepared"],
    );
    refused(
        &["bench", "go-tpc", "--engines", "innodb,myisam"],
        &["MyISAM has no transactions", "innodb, myrocks, peregrine"],
    );
    refused(
        &["bench", "go-tpc", "--engines", "peregrine"],
        &["--compare names innodb", "--engines"],
    );
    let dir = tempfile::tempdir().expect("a directory");
    peregrine(&dir)
        .env("PATH", dir.path())
        .args(["bench", "sysbench"])
        .assert()
        .failure()
        .stderr(contains("apt-get install sysbench"));
}

#[test]
fn the_null_target_needs_results() {
    refused(
        &["bench", "null", "no-such-directory"],
        &["no-such-directory"],
    );
}

#[test]
fn unknown_names_are_answered_with_the_known_ones() {
    refused(
        &["bench", "run", "--engines", "innodb,falcon"],
        &[
            "falcon",
            "innodb",
            "myisam",
            "aria",
            "myrocks",
            "peregrine, peregrine-library",
            "sqlite",
            "lmdb",
            "redb",
            "fjall",
        ],
    );
    refused(
        &["bench", "run", "--queries", "READ_ALL"],
        &["READ_ALL", "READ_PK_POINT", "READ_FTS"],
    );
    refused(
        &["bench", "run", "--workload", "olpt"],
        &["olpt", "normal", "join", "oltp", "all", ".toml"],
    );
    refused(
        &[
            "bench",
            "run",
            "--set",
            "raws=3",
            "--workload",
            "normal,join",
        ],
        &["raws", "rows", "t1_rows"],
    );
    refused(
        &["bench", "run", "--profile", "slow"],
        &["slow", "quick", "standard", "paper"],
    );
    refused(
        &["bench", "run", "--protocol", "html"],
        &["html", "text", "prepared", "both"],
    );
    for (option, value, told) in [
        ("--warm-up", "warm", "steady"),
        ("--steady", "101", "0 to 100"),
        ("--rate", "0", "transactions a second"),
        ("--memory-limit", "5", "at least 1M"),
    ] {
        refused(&["bench", "run", option, value], &[option, told]);
    }
    refused(
        &["bench", "run", "--placement", "odd"],
        &["odd", "paired", "free"],
    );
    refused(
        &["bench", "crash", "--engine", "falcon"],
        &["falcon", "peregrine"],
    );
    refused(
        &["bench", "crash", "--target", "disk"],
        &["disk", "server", "library"],
    );
    refused(&["bench", "fly"], &["fly", "run", "report", "crash"]);
    refused(
        &["bench", "run", "--engine", "innodb"],
        &["--engine", "--engines", "--threads", "--resume"],
    );
    refused(&["fly"], &["fly", "server", "bench", "check", "dump"]);
}

#[test]
fn embedded_stores_are_refused_where_they_have_no_part() {
    let bench = |more: &[&'static str]| {
        let usual = ["bench", "run", "--engines", "lmdb,sqlite"];
        [&usual, more].concat()
    };
    for (more, told) in [
        (&["--url", "mysql://a@b/"][..], &["--url", "lmdb"][..]),
        (&["--memory-limit", "64M"], &["--memory-limit", "lmdb"]),
        (
            &["--workload", "join,load"],
            &["--workload normal", "innodb"],
        ),
        (&["--set", "writers=2"], &["without writers"]),
    ] {
        refused(&bench(more), told);
    }
    refused(
        &["bench", "crash", "--engine", "sqlite"],
        &["unknown engine 'sqlite'", "peregrine"],
    );
    let library = ["bench", "crash", "--target", "library"];
    for more in [["--engine", "innodb"], ["--plugin", "p.so"], ["--", "-x"]] {
        let arguments = [&library[..], &more[..]].concat();
        refused(&arguments, &["--engine, --plugin"]);
    }
}

#[test]
fn embedded_stores_are_measured_where_there_is_no_mariadb() {
    let dir = tempfile::tempdir().expect("a directory");
    let small = [
        "--rows",
        "200",
        "--threads",
        "2",
        "--cache",
        "8M",
        "--runs",
        "1",
    ];
    let short = ["--warm-up", "0", "--run-time", "0.001", "--out", "there"];
    peregrine(&dir)
        .args(["bench", "run", "--engines", "peregrine-library,lmdb"])
        .args(small)
        .args(short)
        .assert()
        .success()
        .stdout(contains("every answer was right"))
        .stdout(contains("LMDB/Peregrine library"));
    assert!(dir.path().join("there/report.html").is_file());
    assert!(!dir.path().join("there/embedded-normal").exists());
}

#[test]
fn values_out_of_range_are_refused() {
    refused(&["bench", "run", "--threads", "0"], &["--threads", "1"]);
    refused(&["bench", "run", "--threads", "x"], &["--threads"]);
    refused(&["bench", "run", "--rows", "0"], &["--rows"]);
    refused(&["bench", "run", "--set", "rows"], &["--set", "rows=1000"]);
    refused(&["bench", "run", "--runs", "0"], &["--runs"]);
    refused(&["bench", "run", "--cache", "lots"], &["--cache", "128M"]);
    refused(&["bench", "run", "--cache", "99999999999G"], &["--cache"]);
    refused(&["bench", "run", "--run-time=-1"], &["seconds"]);
    refused(&["bench", "run", "--run-time=NaN"], &["seconds"]);
    refused(
        &["bench", "run", "--charset", "latin1;--"],
        &["character set", "utf8mb4"],
    );
    refused(&["bench", "crash", "--kills", "0"], &["--kills"]);
}

#[test]
fn no_mariadb_says_what_to_install() {
    for arguments in [
        &["server", "start", "--dir", "here"][..],
        &["bench", "run", "--engines", "innodb", "--out", "there"],
        &["bench", "crash", "--engine", "innodb", "--dir", "here"],
    ] {
        refused(
            arguments,
            &["no MariaDB was found", "make mariadb", "apt-get install"],
        );
    }
}

#[test]
fn no_plugin_says_what_to_build() {
    refused(
        &["bench", "crash", "--plugin", "nowhere.so"],
        &["nowhere.so", "make plugin"],
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

#[test]
fn reports_and_resumptions_need_results() {
    refused(&["bench", "report", "nothing-here"], &["nothing-here"]);
    refused(
        &["bench", "run", "--resume", "--out", "nothing-here"],
        &["nothing-here"],
    );
    refused(
        &["bench", "run", "--resume", "--threads", "64"],
        &["--resume", "--threads"],
    );
}

#[test]
fn thresholds_need_results_and_a_file_that_is_right() {
    let dir = tempfile::tempdir().expect("a directory");
    std::fs::write(dir.path().join("thresholds.toml"), "engine = 'falcon'\n").expect("written");
    peregrine(&dir)
        .args([
            "bench",
            "thresholds",
            ".",
            "--thresholds",
            "thresholds.toml",
        ])
        .assert()
        .failure()
        .stderr(contains("thresholds.toml:1:10: unknown engine 'falcon'"));
    std::fs::write(
        dir.path().join("thresholds.toml"),
        "engine = 'aria'\n[minimum]\nREAD_FTS = 1\n",
    )
    .expect("written");
    peregrine(&dir)
        .args([
            "bench",
            "thresholds",
            ".",
            "--thresholds",
            "thresholds.toml",
        ])
        .assert()
        .failure()
        .stderr(contains("results.jsonl"));
    refused(&["bench", "thresholds", "here"], &["--thresholds"]);
}

#[test]
fn workload_files_are_checked_with_line_and_column() {
    let dir = tempfile::tempdir().expect("a directory");
    let right = "name = 'one'\nabout = 'a table'\nrun = 'each'\n\
                 [[table]]\nname = 't'\nrows = 5\ncolumns = [{ name = 'id', type = 'int', value = 'row' }]\n\
                 [[transaction]]\nname = 'count'\nsql = 'SELECT count(*) FROM t'\n";
    let write = |name: &str, text: &str| {
        std::fs::write(dir.path().join(name), text).expect("written");
    };
    write("right.toml", right);
    write("wrong.toml", &right.replace("'row'", "'raw'"));
    peregrine(&dir)
        .args(["bench", "check", "right.toml"])
        .assert()
        .success()
        .stdout(contains("workload one is right"));
    peregrine(&dir)
        .args(["bench", "check", "right.toml", "wrong.toml"])
        .assert()
        .code(1)
        .stderr(contains("wrong.toml:7:50: unknown name 'raw'"));
    refused(&["bench", "check", "nowhere.toml"], &["nowhere.toml"]);
    refused(
        &["bench", "run", "--workload", "nowhere.toml"],
        &["nowhere.toml"],
    );
}
