//! The thirteen queries of table `normal` on embedded stores: every answer must be right for all parameters.
//!
//! Also `bench run` on the stores, from loading to the report, interrupted and resumed.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use peregrine_bench::normal::{Answers, Check, Generator, Query};
use peregrine_bench::results::record::{Line, Load, Planned, Run, RunSettings};
use peregrine_bench::results::{csv, file};
use peregrine_bench::runner::{
    summary, Request, Server, {self},
};
use peregrine_bench::stores::{
    fill, Store, StoreSession, {self},
};
use peregrine_bench::workload::{builtin, Options, Workload};
use peregrine_harness::engines::{
    Datum, Embedded, Engine, Placement, Protocol, Session as _, Statement,
};
use peregrine_harness::error::HarnessError;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

const ROWS: u32 = 4_000;
const CACHE: u64 = 64 << 20;
const SEED: u64 = 3;

/// Opens a store and loads the table.
fn loaded(store: Embedded, dir: &Path, generator: &Generator) -> Box<dyn Store> {
    let mut open = stores::open(store, &dir.join(store.name()), CACHE).expect("a store");
    fill(&mut *open, generator, &|| true).expect("filled");
    open
}

/// Returns every query as a statement, in order.
fn statements() -> Arc<[Statement]> {
    Query::ALL
        .map(|query| Statement::new(query.name(), "SELECT"))
        .into()
}

fn session(which: Embedded, store: &dyn Store) -> StoreSession {
    let mut session = StoreSession::new(store.reader().expect("a reader"));
    session
        .prepare(Engine::Embedded(which), Protocol::Text, &statements())
        .expect("prepared");
    session
}

fn data(numbers: &[u32]) -> Vec<Datum> {
    let numbers = numbers.iter().copied().map(i64::from);
    numbers.map(Datum::Integer).collect()
}

/// Parameters of a query: some in the table, some outside of it, and some with the bounds reversed.
fn given(query: Query, numbers: (u32, u32, u32)) -> Vec<u32> {
    let (a, b, c) = numbers;
    let id = |number: u32| number % (ROWS + 10);
    let ids = |a: u32, b: u32| vec![id(a), id(a) + b % 300];
    match query {
        // This query needs an id that exists.
        Query::ReadPkPointIndex => vec![1 + a % ROWS],
        Query::ReadPkPoint => vec![id(a)],
        Query::ReadPkRange | Query::ReadPkRangeIndex if c % 8 == 0 => vec![id(a) + 1, id(a)],
        Query::ReadPkRange | Query::ReadPkRangeIndex => ids(a, b),
        Query::ReadFts => vec![],
        Query::ReadKeyPoint
        | Query::ReadKeyPointLimit
        | Query::ReadKeyPointNoData
        | Query::ReadKeyPointNoDataLimit => vec![a % 203],
        Query::ReadKeyRange
        | Query::ReadKeyRangeLimit
        | Query::ReadKeyRangeNoData
        | Query::ReadKeyRangeNoDataLimit => vec![a % 203, 1 + b % 52, c % 54],
    }
}

#[test]
fn every_store_answers_every_query_right() {
    let dir = tempfile::tempdir().expect("a directory");
    let generator = Generator::new(SEED, ROWS);
    let answers = Answers::compute(&generator, |_| ());
    let all: Vec<(Embedded, RefCell<StoreSession>)> = Embedded::ALL
        .into_iter()
        .map(|store| {
            let open = loaded(store, dir.path(), &generator);
            (store, RefCell::new(session(store, &*open)))
        })
        .collect();
    let mut runner = TestRunner::new(Config::with_cases(400));
    let asked = (0..Query::ALL.len(), any::<(u32, u32, u32)>());
    runner
        .run(&asked, |(at, numbers)| {
            let query = Query::ALL[at];
            let given = data(&given(query, numbers));
            for (store, session) in &all {
                let mut check = Check::new(&answers, query);
                check.begin();
                let done = session.borrow_mut().execute(at, &given, &mut check);
                prop_assert!(done.is_ok(), "{store:?} {query:?} {given:?}: {done:?}");
                let verdict = check.verdict(&given);
                prop_assert!(
                    verdict.is_ok(),
                    "{store:?} {query:?} {given:?}: {verdict:?}"
                );
            }
            Ok(())
        })
        .expect("every case");
}

#[test]
fn what_is_no_query_is_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    let generator = Generator::new(SEED, 10);
    let open = loaded(Embedded::Lmdb, dir.path(), &generator);
    let answers = Answers::compute(&generator, |_| ());
    let mut check = Check::new(&answers, Query::ReadPkPoint);
    let mut session = session(Embedded::Lmdb, &*open);
    for (at, given) in [(99, data(&[])), (0, data(&[])), (0, vec![Datum::Null])] {
        let refused = session.execute(at, &given, &mut check);
        let refused = refused.expect_err("no query").to_string();
        assert!(refused.contains("table normal"), "{refused}");
    }
}

/// A small run of some workloads on some engines.
fn request(out: &Path, engines: Vec<Engine>, names: &[&str]) -> Request {
    let planned = |name: &&str| -> Planned {
        let (text, file) = builtin::find(name).expect("shipped");
        let rows = [("rows", 300), ("t1_rows", 300), ("t2_rows", 50)];
        let mut options = Options::default();
        let usual = Workload::read(&text, &file, &options).expect("read");
        let there = rows.iter();
        options.set = there
            .filter(|(name, _)| usual.parameters.contains_key(*name))
            .map(|(name, rows)| ((*name).to_owned(), *rows))
            .collect();
        let workload = Workload::read(&text, &file, &options).expect("read");
        Planned {
            name: workload.name.clone(),
            source: (*name).to_owned(),
            cells: workload.cells().into_iter().map(str::to_owned).collect(),
            parameters: workload.parameters,
            text,
            once: false,
        }
    };
    Request {
        settings: RunSettings {
            workloads: names.iter().map(planned).collect(),
            profile: "quick".to_owned(),
            engines,
            threads: vec![1, 3],
            protocols: vec![Protocol::Text, Protocol::Prepared],
            seed: SEED,
            cache_bytes: CACHE,
            charset: "latin1".to_owned(),
            placement: Placement::Paired,
            warm_up_s: 0.0,
            steady_percent: None,
            rate: None,
            memory_limit_bytes: None,
            run_s: 0.002,
            runs: 2,
            server: None,
        },
        out: out.to_path_buf(),
        resume: false,
        server: Server::None,
        keep_data: true,
        loading_cache_bytes: None,
    }
}

fn runs(lines: &[Line]) -> Vec<&Run> {
    lines
        .iter()
        .filter_map(|line| match line {
            Line::Run(run) => Some(run.as_ref()),
            _ => None,
        })
        .collect()
}

fn loads(lines: &[Line]) -> Vec<&Load> {
    lines
        .iter()
        .filter_map(|line| match line {
            Line::Load(load) => Some(load),
            _ => None,
        })
        .collect()
}

#[test]
fn a_run_of_embedded_stores_needs_no_server_and_is_gone_on_with() {
    let dir = tempfile::tempdir().expect("a directory");
    let out = dir.path().join("run");
    let all = Embedded::ALL.map(Engine::Embedded).to_vec();
    // Embedded stores run only the workload `normal`: nothing of the join is done, and nothing fails.
    let mut request = request(&out, all, &["join", "normal"]);
    let lines = runner::run(&request).expect("it runs").lines;
    let expected = Query::ALL.len() * 2 * 2 * Embedded::ALL.len();
    assert_eq!(runs(&lines).len(), expected);
    for run in runs(&lines) {
        assert!(run.is_valid(), "{run:?}");
        assert_eq!(run.protocol, Protocol::Text, "the first, and no other");
        let is_lmdb = run.engine == Engine::Embedded(Embedded::Lmdb);
        assert_eq!(run.cache_bytes, if is_lmdb { 0 } else { CACHE });
        assert_eq!(run.durability, "sync at commit");
    }
    assert_eq!(loads(&lines).len(), Embedded::ALL.len());
    assert!(loads(&lines)
        .iter()
        .all(|load| load.rows == 300 && load.used.is_some()));

    let shown = summary::render(&lines);
    assert!(shown.contains("every answer was right"), "{shown}");
    let report = out.join("report.html");
    peregrine_bench::report::write(std::slice::from_ref(&out), &report).expect("a report");
    let page = std::fs::read_to_string(&report).expect("read");
    csv::write(&out, &lines).expect("a table");
    let table = std::fs::read_to_string(out.join("results.csv")).expect("read");
    for store in Embedded::ALL {
        for text in [&shown, &page] {
            assert!(text.contains(store.title()), "{store:?}");
        }
        assert!(table.contains(store.name()), "{store:?}");
    }

    // Interrupted in the middle: the last runs are missing, and so are one store's data.
    let path = out.join(file::FILE_NAME);
    let text = std::fs::read_to_string(&path).expect("read");
    let kept: Vec<&str> = text.lines().collect();
    let kept = &kept[..kept.len() - 20];
    std::fs::write(&path, format!("{}\n", kept.join("\n"))).expect("written");
    std::fs::remove_dir_all(out.join("embedded-normal").join("redb")).expect("removed");
    request.resume = true;
    request.keep_data = false;
    let lines = runner::run(&request).expect("it goes on").lines;
    let done = runs(&lines).into_iter();
    let distinct: BTreeSet<_> = done
        .map(|run| (run.query.clone(), run.threads, run.engine, run.run))
        .collect();
    assert_eq!((distinct.len(), runs(&lines).len()), (expected, expected));
    assert!(runs(&lines).iter().all(|run| run.is_valid()));
    let loaded: Vec<&str> = loads(&lines)
        .iter()
        .map(|load| load.engine.name())
        .collect();
    assert_eq!(loaded[..5], Embedded::ALL.map(Embedded::name));
    assert_eq!(loaded[5..], ["redb"], "what is there is used");
    assert!(!out.join("embedded-normal").exists(), "all is done");
}

#[test]
fn engines_of_a_server_are_not_measured_without_one() {
    let dir = tempfile::tempdir().expect("a directory");
    let engines = vec![Engine::InnoDb, Engine::Embedded(Embedded::Lmdb)];
    let request = request(&dir.path().join("run"), engines, &["normal"]);
    let refused = runner::run(&request).expect_err("refused");
    assert!(matches!(refused, HarnessError::Usage(_)), "{refused}");
}
