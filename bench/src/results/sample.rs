//! Lines for tests.

use std::collections::BTreeMap;

use super::record::{Finish, Header, Kind, Line, Load, Machine, Planned, Run, RunSettings, FORMAT};
use peregrine_harness::engines::{Engine, Placement, Protocol};

/// The settings of a small run.
pub fn settings() -> RunSettings {
    RunSettings {
        workloads: vec![Planned {
            name: "normal".to_owned(),
            source: "normal".to_owned(),
            text: crate::workload::builtin::ALL[0].text.to_owned(),
            parameters: BTreeMap::from([("rows".to_owned(), 1_000)]),
            cells: vec!["READ_PK_POINT".to_owned(), "READ_FTS".to_owned()],
            once: false,
        }],
        profile: "quick".to_owned(),
        engines: vec![Engine::InnoDb, Engine::Peregrine],
        threads: vec![1, 4],
        protocols: vec![Protocol::Text],
        seed: 1,
        cache_bytes: 1 << 27,
        charset: "latin1".to_owned(),
        placement: Placement::Free,
        warm_up_s: 0.01,
        steady_percent: None,
        rate: None,
        memory_limit_bytes: None,
        run_s: 0.02,
        runs: 3,
        server: None,
    }
}

/// A header.
pub fn header() -> Header {
    Header {
        format: FORMAT,
        suite_version: "0".to_owned(),
        server_version: "10.11".to_owned(),
        engine_versions: BTreeMap::new(),
        started: "2026-01-01T00:00:00Z".to_owned(),
        machine: Machine {
            cpu: "a processor".to_owned(),
            cores: 2,
            memory_bytes: 1 << 33,
            kernel: "6.1".to_owned(),
            system: "Debian".to_owned(),
            file_system: "ext4".to_owned(),
        },
        settings: settings(),
        variables: BTreeMap::new(),
        command: "peregrine bench run".to_owned(),
    }
}

/// A run.
pub fn run(engine: Engine, query: &str, threads: u32, run: u32, rate: f64) -> Box<Run> {
    Box::new(Run {
        workload: "normal".to_owned(),
        query: query.to_owned(),
        engine,
        protocol: Protocol::Text,
        threads,
        run,
        seconds: 1.0,
        queries: 100,
        statements: 100,
        rate,
        unit: "queries/s".to_owned(),
        p50_us: 10,
        p95_us: 20,
        p99_us: 30,
        max_us: 40,
        kinds: BTreeMap::from([(
            "a_kind".to_owned(),
            Kind {
                count: 7,
                p50_us: 1,
                p95_us: 2,
                p99_us: 3,
                max_us: 4,
            },
        )]),
        rolled_back: 0,
        conflicts: BTreeMap::from([("1213".to_owned(), 3)]),
        beside: BTreeMap::from([("a_writer".to_owned(), 5)]),
        due_rate: None,
        left: 0,
        warm_up: None,
        by_second: Vec::new(),
        deferred: None,
        errors: 0,
        wrong: 0,
        problem: None,
        durability: engine.durability().to_owned(),
        cache_bytes: 1 << 27,
        server_peak_rss_bytes: Some(1 << 28),
        server_cpu_s: Some(1.5),
        client_cpu_s: Some(0.25),
    })
}

/// All lines of a file.
pub fn lines() -> Vec<Line> {
    vec![
        Line::Header(Box::new(header())),
        Line::Load(Load {
            workload: "normal".to_owned(),
            engine: Engine::InnoDb,
            run: 1,
            rows: 1_000,
            seconds: 1.5,
            load_data_s: 1.25,
            insert_s: None,
            index_s: None,
            settle_s: 0.5,
            analyze_s: 0.25,
            disk_bytes: 1 << 20,
            data_bytes: 1 << 19,
            index_bytes: 1 << 18,
            free_bytes: 1 << 16,
            log_bytes: 1 << 24,
            durability: "sync at commit".to_owned(),
            cache_bytes: 1 << 27,
            used: None,
            server_peak_rss_bytes: None,
        }),
        Line::Run(run(Engine::InnoDb, "READ_PK_POINT", 1, 1, 100.0)),
        Line::Run(run(Engine::Peregrine, "READ_PK_POINT", 1, 1, 150.0)),
        Line::Finish(Finish {
            finished: "2026-01-01T00:10:00Z".to_owned(),
            seconds: 600.0,
        }),
    ]
}
