//! The lines of a results file.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use peregrine_harness::engines::{Embedded, Engine, Placement, Protocol};

/// One line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Line {
    /// The first line: versions, machine and settings.
    Header(Box<Header>),
    /// The loading of an engine's tables.
    Load(Load),
    /// The server's plan of a query on an engine.
    Plan(Plan),
    /// One effective run of one cell.
    Run(Box<Run>),
    /// The end of a complete run of the matrix.
    Finish(Finish),
}

/// The version of this format.
pub const FORMAT: u32 = 2;

/// Versions, machine and settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// The format of the file, [`FORMAT`].
    pub format: u32,
    /// The version of this program.
    pub suite_version: String,
    /// The server's `@@version`; empty where only embedded stores are measured.
    pub server_version: String,
    /// Versions of the engines' plug-ins, as the server reports them, and of embedded stores.
    pub engine_versions: BTreeMap<String, String>,
    /// The start of the run, in UTC.
    pub started: String,
    /// The machine.
    pub machine: Machine,
    /// The settings that must agree for runs to be comparable.
    pub settings: RunSettings,
    /// The server's variables that matter, read from the server.
    pub variables: BTreeMap<String, String>,
    /// The command that repeats the run.
    pub command: String,
}

/// The settings of a run of the matrix.
///
/// A run can only be resumed with the same settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunSettings {
    /// The workloads, in the order in which they run.
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
    /// Each engine's cache, in bytes; 0 on a server that keeps its own settings.
    pub cache_bytes: u64,
    /// The table's character set.
    pub charset: String,
    /// The processors on which client and server threads run.
    pub placement: Placement,
    /// The warm-up before the first run of a cell, in seconds.
    ///
    /// The maximum, if a warm-up ends when the rate is steady.
    pub warm_up_s: f64,
    /// If a warm-up ends when the rate is steady: the percentage within which rates count as equal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steady_percent: Option<f64>,
    /// In an open loop: transactions due in each second, of all clients together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
    /// The hard limit on the server's memory, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_limit_bytes: Option<u64>,
    /// The length of an effective run, in seconds.
    pub run_s: f64,
    /// Effective runs per cell.
    pub runs: u32,
    /// The server, if it was not started for the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<Elsewhere>,
}

/// A server that the benchmark did not start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Elsewhere {
    /// Its URL, without a password.
    pub url: String,
    /// The engines that have transactions, as the server reports.
    pub transactional: Vec<Engine>,
}

/// A workload of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Planned {
    /// Its name.
    pub name: String,
    /// Its name on the command line, or the path of its file.
    pub source: String,
    /// The text of its file, so that the results can be resumed even if the file has changed.
    pub text: String,
    /// Its parameters.
    pub parameters: BTreeMap<String, i64>,
    /// The measured cells: names of transactions, or `mix`.
    pub cells: Vec<String>,
    /// Whether one client runs each transaction once in a run, so that its time is the figure.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub once: bool,
}

impl RunSettings {
    /// Describes the size of the engines' caches.
    #[must_use]
    pub fn caches(&self) -> String {
        match &self.server {
            None => format!("{} MiB of cache for each engine", self.cache_bytes >> 20),
            Some(server) => format!("caches as they are on {}", server.url),
        }
    }

    /// The engines that run on a server.
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

    /// Returns whether an engine has transactions.
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

/// The machine of the benchmark.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// The processor's model.
    pub cpu: String,
    /// The number of processors that the process may use.
    pub cores: u32,
    /// Memory, in bytes.
    pub memory_bytes: u64,
    /// The operating system's kernel.
    pub kernel: String,
    /// The distribution.
    pub system: String,
    /// The file system of the data.
    pub file_system: String,
}

/// The loading of one engine's tables.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Load {
    /// The workload's name.
    pub workload: String,
    /// The engine.
    pub engine: Engine,
    /// The run, from 1.
    ///
    /// There are several where loading itself is measured.
    #[serde(default = "first")]
    pub run: u32,
    /// Rows loaded.
    pub rows: u64,
    /// Seconds for `LOAD DATA`, `FLUSH TABLES` and syncing the files.
    ///
    /// For an embedded store, seconds for its transactions, each of which is durable.
    pub seconds: f64,
    /// Seconds for `LOAD DATA` alone.
    pub load_data_s: f64,
    /// Seconds for loading the same rows by `INSERT` of many rows at a time, where that is measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub insert_s: Option<f64>,
    /// Seconds for building all secondary indexes of loaded tables by `ALTER TABLE` until they are durable, where that
    /// is measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index_s: Option<f64>,
    /// Seconds of the server's background work after loading, which no figure includes.
    ///
    /// For an embedded store, the seconds of the work that it is told to do after loading.
    pub settle_s: f64,
    /// Seconds for `ANALYZE TABLE`.
    pub analyze_s: f64,
    /// Bytes on disk, as allocated by the file system.
    pub disk_bytes: u64,
    /// `data_length`, as the engine reports it.
    pub data_bytes: u64,
    /// `index_length`, as the engine reports it.
    pub index_bytes: u64,
    /// `data_free`, as the engine reports it: free space in its files.
    #[serde(default)]
    pub free_bytes: u64,
    /// Bytes of the engine's log on disk; its maximum is a setting.
    #[serde(default)]
    pub log_bytes: u64,
    /// The durability that a commit of this engine promises.
    pub durability: String,
    /// The engine's cache, in bytes.
    pub cache_bytes: u64,
    /// An embedded store's durability and cache, and how it is read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used: Option<String>,
    /// The server's peak resident memory so far, in bytes.
    pub server_peak_rss_bytes: Option<u64>,
}

/// The number of the only run, where there is one.
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
    /// Whether it accesses the table in the same way as the baseline's plan; `None` for the baseline itself.
    pub same_as_baseline: Option<bool>,
}

/// One line of `EXPLAIN`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanStep {
    /// The access method: `const`, `ref`, `range`, `ALL`…
    pub access: Option<String>,
    /// The index used.
    pub key: Option<String>,
    /// Bytes of the index used.
    pub key_length: Option<String>,
    /// The estimated number of rows.
    pub rows: Option<String>,
    /// The other columns, such as `Using index`.
    pub extra: Option<String>,
}

impl PlanStep {
    /// Returns whether two steps access the table in the same way; the estimates may differ.
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
    /// The protocol of the statements.
    ///
    /// Embedded stores have none: their runs are under the first protocol measured.
    pub protocol: Protocol,
    /// Client threads.
    pub threads: u32,
    /// The number of the run in its cell, from 1.
    pub run: u32,
    /// Wall-clock seconds from the common start to the last answer.
    pub seconds: f64,
    /// Transactions done: a transaction is a single query or several statements.
    pub queries: u64,
    /// Statements executed.
    pub statements: u64,
    /// The figure of the run: more is better.
    ///
    /// For a transaction that runs once in each run, how often it could run in a second.
    pub rate: f64,
    /// The unit of the figure: `queries/s`, `transactions/s`, or the unit in the workload's file.
    ///
    /// `s` means that the time is shown, which is the inverse of the rate.
    pub unit: String,
    /// Median latency of a transaction, in microseconds.
    pub p50_us: u64,
    /// 95th percentile.
    pub p95_us: u64,
    /// 99th percentile.
    pub p99_us: u64,
    /// Maximum latency of a transaction.
    pub max_us: u64,
    /// For mixed transactions, the part of each kind.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub kinds: BTreeMap<String, Kind>,
    /// Transactions that ended with an intended rollback.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub rolled_back: u64,
    /// Conflicts after which a client began a transaction again, by the server's error code.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub conflicts: BTreeMap<String, u64>,
    /// Background transactions: the number done of each.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub beside: BTreeMap<String, u64>,
    /// In an open loop: transactions due in each second.
    ///
    /// Latencies count from the time when each is due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due_rate: Option<f64>,
    /// In an open loop: transactions that were due and did not begin, because all clients were busy.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left: u64,
    /// The warm-up before the run, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warm_up: Option<WarmUp>,
    /// For a run of two seconds or longer: the transactions of each whole second.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_second: Vec<Second>,
    /// The work that the engine deferred and did after the run, if the run wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deferred: Option<Deferred>,
    /// Transactions that failed, background transactions included.
    pub errors: u64,
    /// Transactions with wrong answers, also in the warm-up, and conditions that did not hold after the run.
    pub wrong: u64,
    /// The first problem: a wrong answer or an error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// The durability that a commit of this engine promises.
    pub durability: String,
    /// The engine's cache, in bytes.
    pub cache_bytes: u64,
    /// The server's peak resident memory so far, in bytes.
    pub server_peak_rss_bytes: Option<u64>,
    /// Processor time of the server during the run, in seconds (to a hundredth).
    #[serde(default)]
    pub server_cpu_s: Option<f64>,
    /// Processor time of the load generator, which adds the same work for every engine.
    #[serde(default)]
    pub client_cpu_s: Option<f64>,
}

/// The part of one kind among mixed transactions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kind {
    /// The number of transactions done.
    pub count: u64,
    /// Median latency, in microseconds.
    pub p50_us: u64,
    /// 95th percentile.
    pub p95_us: u64,
    /// 99th percentile.
    pub p99_us: u64,
    /// Maximum latency.
    pub max_us: u64,
}

/// A warm-up.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct WarmUp {
    /// Its length, in seconds.
    pub seconds: f64,
    /// Whether the rate became steady, if the warm-up waited for that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steady: Option<bool>,
}

/// The transactions of one second of a run: an array of three numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(u64, u64, u64)", into = "(u64, u64, u64)")]
pub struct Second {
    /// Transactions that ended in this second.
    pub done: u64,
    /// Their mean latency, in microseconds.
    pub mean_us: u64,
    /// Their maximum latency.
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

/// The work that a run left for later: dirty pages, compaction, purge.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Deferred {
    /// Seconds from the last answer until the server was idle.
    pub seconds: f64,
    /// Processor time of the server for this work, in seconds (to a hundredth).
    pub server_cpu_s: Option<f64>,
    /// Bytes that the server wrote for this work.
    pub written_bytes: Option<u64>,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Run {
    /// The rate if the deferred work counts as part of the run's time.
    #[must_use]
    pub fn charged_rate(&self) -> f64 {
        let after = self.deferred.map_or(0.0, |deferred| deferred.seconds);
        peregrine_harness::arithmetic::ratio(self.seconds, self.seconds + after)
            .map_or(self.rate, |part| self.rate * part)
    }

    /// Returns whether the run is valid: it had queries, and each got a right answer.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.errors == 0 && self.wrong == 0 && self.queries > 0
    }
}

/// The end of a complete run of the matrix.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finish {
    /// The end of the run, in UTC.
    pub finished: String,
    /// Seconds of this measurement session, loading included.
    pub seconds: f64,
}
