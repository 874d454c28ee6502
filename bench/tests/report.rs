//! `peregrine bench report` as a user runs it, on invented results.

use std::path::Path;

use assert_cmd::Command;
use predicates::prelude::PredicateBooleanExt;
use predicates::str::contains;

fn report(dir: &Path) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("peregrine-bench"));
    command.current_dir(dir).args(["report"]);
    command
}

const WORKLOAD: &str = "name = 'one'\nabout = 'a table'\nrun = 'each'\n\
    [[table]]\nname = 't'\nrows = 5\ncolumns = [{ name = 'id', type = 'int', value = 'row' }]\n\
    [[transaction]]\nname = 'count'\nsql = 'SELECT count(*) FROM t'\n";

/// Results of one cell on InnoDB and on Peregrine.
fn results(dir: &Path, innodb: [f64; 2], peregrine: [f64; 2]) {
    std::fs::create_dir_all(dir).expect("created");
    let text = WORKLOAD.replace('\n', "\\n");
    let mut lines = format!(
        r#"{{"kind":"header","format":2,"suite_version":"0","server_version":"10.11","engine_versions":{{}},"started":"2026-01-01T00:00:00Z","machine":{{"cpu":"a processor","cores":2,"memory_bytes":1,"kernel":"6","system":"Debian","file_system":"ext4"}},"settings":{{"workloads":[{{"name":"one","source":"one.toml","text":"{text}","parameters":{{}},"cells":["count"]}}],"profile":"quick","engines":["innodb","peregrine"],"threads":[4],"protocols":["text"],"seed":1,"cache_bytes":134217728,"charset":"latin1","placement":"free","warm_up_s":0,"run_s":1,"runs":2}},"variables":{{}},"command":"peregrine bench run"}}
"#
    );
    for (engine, rates) in [("innodb", innodb), ("peregrine", peregrine)] {
        for (run, rate) in (1..).zip(rates) {
            lines.push_str(&format!(
                r#"{{"kind":"run","workload":"one","query":"count","engine":"{engine}","protocol":"text","threads":4,"run":{run},"seconds":1,"queries":100,"statements":100,"rate":{rate},"unit":"queries/s","p50_us":1,"p95_us":2,"p99_us":3,"max_us":4,"errors":0,"wrong":0,"durability":"sync at commit","cache_bytes":134217728}}
"#
            ));
        }
    }
    std::fs::write(dir.join("results.jsonl"), lines).expect("written");
}

#[test]
fn two_results_are_compared_and_both_keep_their_own_reports() {
    let dir = tempfile::tempdir().expect("a directory");
    let (before, after) = (dir.path().join("before"), dir.path().join("after"));
    results(&before, [100.0, 99.0], [150.0, 149.0]);
    results(&after, [100.5, 99.0], [300.0, 299.0]);
    report(dir.path())
        .args(["--compare", "before", "after"])
        .assert()
        .success()
        .stdout(contains("InnoDB: 0 faster, 0 slower, 1 ties of 1 cells"))
        .stdout(contains("Peregrine: 1 faster, 0 slower, 0 ties of 1 cells"))
        .stdout(contains("2.00"))
        .stdout(contains("after/compare.html"));
    let page = std::fs::read_to_string(after.join("compare.html")).expect("a page");
    assert!(page.contains("What changed from before to after"));
    assert!(!after.join("report.html").exists());
    let table = std::fs::read_to_string(after.join("results.csv")).expect("a table");
    assert_eq!(table.lines().count(), 5);
}

#[test]
fn tables_for_a_readme_are_printed() {
    let dir = tempfile::tempdir().expect("a directory");
    results(&dir.path().join("one"), [100.0, 99.0], [150.0, 149.0]);
    report(dir.path())
        .args(["one", "--format", "md"])
        .assert()
        .success()
        .stdout(contains("| count | 4 | 100 | **150 (1.50)** |"));
    assert!(!dir.path().join("one/report.html").exists());
    report(dir.path())
        .args(["one", "--format", "md", "--out", "figures.md"])
        .assert()
        .success()
        .stdout(contains("|").not());
    let text = std::fs::read_to_string(dir.path().join("figures.md")).expect("tables");
    assert!(text.contains("### one"), "{text}");
}

#[test]
fn wrong_options_are_answered_with_the_right_ones() {
    let dir = tempfile::tempdir().expect("a directory");
    for (arguments, told) in [
        (&["--format", "pdf"][..], "html or md"),
        (&["--compare", "one"], "--compare"),
        (&["--compare", "one", "two"], "one"),
    ] {
        report(dir.path())
            .args(arguments)
            .assert()
            .failure()
            .stderr(contains(told).and(contains("panicked").not()));
    }
}
