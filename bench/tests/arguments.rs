//! The answers of `peregrine bench` to wrong input: an error that names the allowed values.

use assert_cmd::Command;
use predicates::prelude::PredicateBooleanExt;
use predicates::str::contains;

/// The command, in a directory of its own and without a MariaDB.
fn peregrine(dir: &tempfile::TempDir) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("peregrine-bench"));
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
        &["run", "--url", "postgres://me@db/"],
        &["mysql://user:password@host:3306/", "?socket="],
    );
    refused(
        &["run", "--url", "mysql://me@db/shop"],
        &["'shop'", "schemas of its own"],
    );
    for (option, value) in [
        ("--cache", "1G"),
        ("--placement", "paired"),
        ("--plugin", "x.so"),
    ] {
        refused(
            &["run", "--url", "mysql://me@db/", option, value],
            &[option, "as it is"],
        );
    }
    refused(
        &["run", "--url", "mysql://me@db/", "--engines", "a b"],
        &["'a b'"],
    );
}

#[test]
fn cross_checks_say_what_they_need() {
    refused(
        &["sysbench", "--protocol", "binary"],
        &["'binary'", "text, prepared"],
    );
    refused(
        &["go-tpc", "--engines", "innodb,myisam"],
        &["MyISAM has no transactions", "innodb, myrocks, peregrine"],
    );
    refused(
        &["go-tpc", "--engines", "peregrine"],
        &["--compare names innodb", "--engines"],
    );
    let dir = tempfile::tempdir().expect("a directory");
    peregrine(&dir)
        .env("PATH", dir.path())
        .args(["sysbench"])
        .assert()
        .failure()
        .stderr(contains("apt-get install sysbench"));
}

#[test]
fn the_null_target_needs_results() {
    refused(&["null", "no-such-directory"], &["no-such-directory"]);
}

#[test]
fn unknown_names_are_answered_with_the_known_ones() {
    refused(
        &["run", "--engines", "innodb,falcon"],
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
        &["run", "--queries", "READ_ALL"],
        &["READ_ALL", "READ_PK_POINT", "READ_FTS"],
    );
    refused(
        &["run", "--workload", "olpt"],
        &["olpt", "normal", "join", "oltp", "all", ".toml"],
    );
    refused(
        &["run", "--set", "raws=3", "--workload", "normal,join"],
        &["raws", "rows", "t1_rows"],
    );
    refused(
        &["run", "--profile", "slow"],
        &["slow", "quick", "standard", "paper"],
    );
    refused(
        &["run", "--protocol", "html"],
        &["html", "text", "prepared", "both"],
    );
    for (option, value, told) in [
        ("--warm-up", "warm", "steady"),
        ("--steady", "101", "0 to 100"),
        ("--rate", "0", "transactions a second"),
        ("--memory-limit", "5", "at least 1M"),
    ] {
        refused(&["run", option, value], &[option, told]);
    }
    refused(&["run", "--placement", "odd"], &["odd", "paired", "free"]);
    refused(&["fly"], &["fly", "run", "report", "null"]);
    refused(
        &["run", "--engine", "innodb"],
        &["--engine", "--engines", "--threads", "--resume"],
    );
}

#[test]
fn embedded_stores_are_refused_where_they_have_no_part() {
    let bench = |more: &[&'static str]| {
        let usual = ["run", "--engines", "lmdb,sqlite"];
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
        .args(["run", "--engines", "peregrine-library,lmdb"])
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
    refused(&["run", "--threads", "0"], &["--threads", "1"]);
    refused(&["run", "--threads", "x"], &["--threads"]);
    refused(&["run", "--rows", "0"], &["--rows"]);
    refused(&["run", "--set", "rows"], &["--set", "rows=1000"]);
    refused(&["run", "--runs", "0"], &["--runs"]);
    refused(&["run", "--cache", "lots"], &["--cache", "128M"]);
    refused(&["run", "--cache", "99999999999G"], &["--cache"]);
    refused(&["run", "--run-time=-1"], &["seconds"]);
    refused(&["run", "--run-time=NaN"], &["seconds"]);
    refused(
        &["run", "--charset", "latin1;--"],
        &["character set", "utf8mb4"],
    );
}

#[test]
fn no_mariadb_says_what_to_install() {
    refused(
        &["run", "--engines", "innodb", "--out", "there"],
        &["no MariaDB was found", "make mariadb", "apt-get install"],
    );
}

#[test]
fn reports_and_resumptions_need_results() {
    refused(&["report", "nothing-here"], &["nothing-here"]);
    refused(
        &["run", "--resume", "--out", "nothing-here"],
        &["nothing-here"],
    );
    refused(
        &["run", "--resume", "--threads", "64"],
        &["--resume", "--threads"],
    );
}

#[test]
fn thresholds_need_results_and_a_file_that_is_right() {
    let dir = tempfile::tempdir().expect("a directory");
    std::fs::write(dir.path().join("thresholds.toml"), "engine = 'falcon'\n").expect("written");
    peregrine(&dir)
        .args(["thresholds", ".", "--thresholds", "thresholds.toml"])
        .assert()
        .failure()
        .stderr(contains("thresholds.toml:1:10: unknown engine 'falcon'"));
    std::fs::write(
        dir.path().join("thresholds.toml"),
        "engine = 'aria'\n[minimum]\nREAD_FTS = 1\n",
    )
    .expect("written");
    peregrine(&dir)
        .args(["thresholds", ".", "--thresholds", "thresholds.toml"])
        .assert()
        .failure()
        .stderr(contains("results.jsonl"));
    refused(&["thresholds", "here"], &["--thresholds"]);
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
        .args(["check-workload", "right.toml"])
        .assert()
        .success()
        .stdout(contains("workload one is right"));
    peregrine(&dir)
        .args(["check-workload", "right.toml", "wrong.toml"])
        .assert()
        .code(1)
        .stderr(contains("wrong.toml:7:50: unknown name 'raw'"));
    refused(&["check-workload", "nowhere.toml"], &["nowhere.toml"]);
    refused(&["run", "--workload", "nowhere.toml"], &["nowhere.toml"]);
}
