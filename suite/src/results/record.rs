//! The lines of a results file.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::engines::{Embedded, Engine, Placement, Protocol};

/// One line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Line {
    /// The first line: versions, machine, settings.
    Header(Box<Header>),
    /// An engine's table was loaded.
    Load(Load),
    /// How the server means to execute a query on an engine.
    Plan(Plan),
    /// One effective run of one cell.
    Run(Box<Run>),
    /// The whole matrix is done.
    Finish(Finish),
}

/// The version of this format.
pub const FORMAT: u32 = 2;

/// Versions, machine and settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// The format of the file, [`FORMAT`].
    pub format: u32,
    /// The version of this suite.
    pub suite_version: String,
    /// The server's `@@version`; empty where only embedded stores are measured.
    pub server_version: String,
    /// Versions of the engines' plug-ins, as the server tells them, and of embedded stores.
    pub engine_versions: BTreeMap<String, String>,
    /// When the run began, in universal time.
    pub started: String,
    /// The machine.
    pub machine: Machine,
    /// The settings that make runs comparable.
    pub settings: RunSettings,
    /// The server's variables that matter, read back from it.
    pub variables: BTreeMap<String, String>,
    /// The command that runs the same again.
    pub command: String,
}

/// The settings of a run of the matrix. A run can be resumed only under the same.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunSettings {
    /// The workloads, in the order they are run.
    pub workloads: Vec<Planned>,
    /// The profile's name.
    pub profile: String,
    /// The engines.
    pub engines: Vec<Engine>,
    /// The thread ladder.
    pub threads: Vec<u32>,
    /// The protocols.
    pub protocols: Vec<Protocol>,
    /// The seed of tables and parameters.
    pub seed: u64,
    /// Each engine's cache, in bytes; 0 on a server whose settings are its own.
    pub cache_bytes: u64,
    /// The table's character set.
    pub charset: String,
    /// Where client and server threads run.
    pub placement: Placement,
    /// Warm-up before the first run of a cell, in seconds; the longest, if it ends when it is steady.
    pub warm_up_s: f64,
    /// If the warm-up ends when it is steady: within how many percent rates count as the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steady_percent: Option<f64>,
    /// In an open loop: transactions a second that are due, of all clients together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
    /// The hard limit on the server's memory, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_limit_bytes: Option<u64>,
    /// The time of an effective run, in seconds.
    pub run_s: f64,
    /// Effective runs per cell.
    pub runs: u32,
    /// The server, if it is none that was started for the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<Elsewhere>,
}

/// A server that somebody else started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Elsewhere {
    /// Its URL, without a password.
    pub url: String,
    /// Those of the engines that have transactions, as it says.
    pub transactional: Vec<Engine>,
}

/// A workload that is to be run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Planned {
    /// Its name.
    pub name: String,
    /// What it was called on the command line: its name, or the path of its file.
    pub source: String,
    /// The file, so that results can be gone on with whatever becomes of it.
    pub text: String,
    /// Its parameters.
    pub parameters: BTreeMap<String, i64>,
    /// What is measured of it: names of transactions, or `mix`.
    pub cells: Vec<String>,
    /// Whether each of them is done once a run, by one client, and its time is the figure.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub once: bool,
}

impl RunSettings {
    /// How large the engines' caches are, for people.
    #[must_use]
    pub fn caches(&self) -> String {
        match &self.server {
            None => format!("{} MiB of cache for each engine", self.cache_bytes >> 20),
            Some(server) => format!("caches as they are on {}", server.url),
        }
    }

    /// Those of the engines that a server has.
    #[must_use]
    pub fn server_engines(&self) -> Vec<Engine> {
        let all = self.engines.iter().copied();
        all.filter(|engine| !engine.is_embedded()).collect()
    }

    /// The embedded stores among the engines.
    #[must_use]
    pub fn embedded(&self) -> Vec<Embedded> {
        let all = self.engines.iter();
        all.filter_map(|engine| match engine {
            Engine::Embedded(store) => Some(*store),
            _ => None,
        })
        .collect()
    }

    /// Whether an engine has transactions.
    #[must_use]
    pub fn has_transactions(&self, engine: Engine) -> bool {
        match &self.server {
            Some(server) => server.transactional.contains(&engine),
            None => engine.is_transactional(),
        }
    }

    /// The numbers of client threads that a workload is measured with.
    #[must_use]
    pub fn ladder(&self, planned: &Planned) -> &[u32] {
        if planned.once {
            &[1]
        } else {
            &self.threads
        }
    }
}

/// What the benchmark ran on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// The processor's model.
    pub cpu: String,
    /// Processors that may be used.
    pub cores: u32,
    /// Memory, in bytes.
    pub memory_bytes: u64,
    /// The operating system's kernel.
    pub kernel: String,
    /// The distribution.
    pub system: String,
    /// The file system that the data lie on.
    pub file_system: String,
}

/// The loading of one engine's tables.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Load {
    /// The workload's name.
    pub workload: String,
    /// The engine.
    pub engine: Engine,
    /// Which run, from 1: where loading is what is measured there are several.
    #[serde(default = "first")]
    pub run: u32,
    /// Rows loaded.
    pub rows: u64,
    /// Seconds for `LOAD DATA`, `FLUSH TABLES` and making the files durable; for an embedded store for its
    /// transactions, each of which is durable.
    pub seconds: f64,
    /// Seconds of that in `LOAD DATA` alone.
    pub load_data_s: f64,
    /// Seconds for the same by `INSERT` of many rows at a time, where that is measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub insert_s: Option<f64>,
    /// Seconds for building all secondary indexes of loaded tables by `ALTER TABLE`, until they are
    /// durable, where that is measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index_s: Option<f64>,
    /// Seconds that the server went on working in the background, charged to nobody; what an embedded store is told to
    /// do after loading.
    pub settle_s: f64,
    /// Seconds for `ANALYZE TABLE`.
    pub analyze_s: f64,
    /// Bytes on disk, as allocated by the file system.
    pub disk_bytes: u64,
    /// `data_length` as the engine tells it.
    pub data_bytes: u64,
    /// `index_length` as the engine tells it.
    pub index_bytes: u64,
    /// `data_free` as the engine tells it: room in its files that nothing takes.
    #[serde(default)]
    pub free_bytes: u64,
    /// Bytes of the engine's log on disk; how large it may become is a setting.
    #[serde(default)]
    pub log_bytes: u64,
    /// What a commit of this engine promises.
    pub durability: String,
    /// The engine's cache, in bytes.
    pub cache_bytes: u64,
    /// How an embedded store is used: its durability and cache, and how it is read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used: Option<String>,
    /// The server's peak resident memory up to here, in bytes.
    pub server_peak_rss_bytes: Option<u64>,
}

/// The run of what is done only once.
fn first() -> u32 {
    1
}

/// A query's plan on an engine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The workload's name.
    pub workload: String,
    /// The query.
    pub query: String,
    /// The engine.
    pub engine: Engine,
    /// The steps of `EXPLAIN`.
    pub steps: Vec<PlanStep>,
    /// Whether it reads the same way as the baseline's; `None` for the baseline itself.
    pub same_as_baseline: Option<bool>,
}

/// One line of `EXPLAIN`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanStep {
    /// The way of access: `const`, `ref`, `range`, `ALL`…
    pub access: Option<String>,
    /// The index used.
    pub key: Option<String>,
    /// Bytes of the index used.
    pub key_length: Option<String>,
    /// Rows expected.
    pub rows: Option<String>,
    /// The rest, such as `Using index`.
    pub extra: Option<String>,
}

impl PlanStep {
    /// Whether two steps read the same way; the estimates may differ.
    #[must_use]
    pub fn reads_like(&self, other: &Self) -> bool {
        self.access == other.access
            && self.key == other.key
            && self.key_length == other.key_length
            && self.extra == other.extra
    }
}

/// One effective run of one cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// The workload's name.
    pub workload: String,
    /// The transaction, or `mix`.
    pub query: String,
    /// The engine.
    pub engine: Engine,
    /// How statements travelled; embedded stores are asked without, and stand under the first that was measured.
    pub protocol: Protocol,
    /// Client threads.
    pub threads: u32,
    /// Which run of the cell, from 1.
    pub run: u32,
    /// Wall-clock seconds from the common start to the last answer.
    pub seconds: f64,
    /// Transactions done: single queries, or several statements.
    pub queries: u64,
    /// Statements executed.
    pub statements: u64,
    /// The figure of the run: more is better. Of what is done once a run how often it could be done in a
    /// second.
    pub rate: f64,
    /// What the figure counts: `queries/s`, `transactions/s`, or what the workload's file says; `s` where the
    /// time is meant, which is the inverse of the rate.
    pub unit: String,
    /// Median latency of a transaction, in microseconds.
    pub p50_us: u64,
    /// 95th percentile.
    pub p95_us: u64,
    /// 99th percentile.
    pub p99_us: u64,
    /// The slowest transaction.
    pub max_us: u64,
    /// Of mixed transactions, each kind's part.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub kinds: BTreeMap<String, Kind>,
    /// Transactions that ended in a rollback, as they were meant to.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub rolled_back: u64,
    /// Conflicts after which a transaction was begun anew, by the server's error code.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub conflicts: BTreeMap<String, u64>,
    /// Of transactions that ran beside the measured ones: how many were done.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub beside: BTreeMap<String, u64>,
    /// In an open loop: transactions a second that were due. Latencies count from when each was due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due_rate: Option<f64>,
    /// In an open loop: transactions that were due and never begun, since all clients were busy.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left: u64,
    /// The warm-up before it, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warm_up: Option<WarmUp>,
    /// Of a run of two seconds or longer: what was done in each whole second.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_second: Vec<Second>,
    /// What the engine had put off and did afterwards, if the run wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deferred: Option<Deferred>,
    /// Transactions that failed, those beside too.
    pub errors: u64,
    /// Transactions with wrong answers, in the warm-up too, and conditions that did not hold afterwards.
    pub wrong: u64,
    /// What was wrong first, or failed first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// What a commit of this engine promises.
    pub durability: String,
    /// The engine's cache, in bytes.
    pub cache_bytes: u64,
    /// The server's peak resident memory up to here, in bytes.
    pub server_peak_rss_bytes: Option<u64>,
    /// Processor time that the server took for the run, in seconds (to a hundredth).
    #[serde(default)]
    pub server_cpu_s: Option<f64>,
    /// Processor time that the load generator took: what it adds to every engine alike.
    #[serde(default)]
    pub client_cpu_s: Option<f64>,
}

/// The part of one kind among mixed transactions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kind {
    /// How many were done.
    pub count: u64,
    /// Median latency, in microseconds.
    pub p50_us: u64,
    /// 95th percentile.
    pub p95_us: u64,
    /// 99th percentile.
    pub p99_us: u64,
    /// The slowest.
    pub max_us: u64,
}

/// A warm-up.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct WarmUp {
    /// How long it took, in seconds.
    pub seconds: f64,
    /// Whether the rate had become steady, where that was waited for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steady: Option<bool>,
}

/// What was done in one second of a run: an array of three numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(u64, u64, u64)", into = "(u64, u64, u64)")]
pub struct Second {
    /// Transactions that ended in it.
    pub done: u64,
    /// Their mean latency, in microseconds.
    pub mean_us: u64,
    /// The slowest.
    pub max_us: u64,
}

impl From<(u64, u64, u64)> for Second {
    fn from((done, mean_us, max_us): (u64, u64, u64)) -> Self {
        Self {
            done,
            mean_us,
            max_us,
        }
    }
}

impl From<Second> for (u64, u64, u64) {
    fn from(second: Second) -> Self {
        (second.done, second.mean_us, second.max_us)
    }
}

/// Work that a run left to be done afterwards: dirty pages, compaction, purge.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Deferred {
    /// Seconds from the last answer until the server rested.
    pub seconds: f64,
    /// Processor time that the server took for it, in seconds (to a hundredth).
    pub server_cpu_s: Option<f64>,
    /// Bytes that the server wrote for it.
    pub written_bytes: Option<u64>,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Run {
    /// The rate with the work that was put off charged to it: as if each transaction had waited for its part.
    #[must_use]
    pub fn charged_rate(&self) -> f64 {
        let after = self.deferred.map_or(0.0, |deferred| deferred.seconds);
        crate::arithmetic::ratio(self.seconds, self.seconds + after)
            .map_or(self.rate, |part| self.rate * part)
    }

    /// Whether the run counts: every query was answered, and rightly.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.errors == 0 && self.wrong == 0 && self.queries > 0
    }
}

/// The end of a complete run of the matrix.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finish {
    /// When it ended, in universal time.
    pub finished: String,
    /// Seconds that this measurement session took, loading included.
    pub seconds: f64,
}
