//! Small workloads of many kinds, each defined by its number and a seed.

use peregrine::Options;

use super::model::Kind;
use peregrine_harness::dice::Dice;

/// The steps of a workload and their relative frequencies.
#[derive(Clone, Copy, Debug, Default)]
pub struct Weights {
    /// Inserts a row.
    pub insert: u32,
    /// Changes a row, or moves it to another key.
    pub update: u32,
    /// Deletes a row.
    pub delete: u32,
    /// Deletes many neighbouring rows at once.
    pub clear: u32,
    /// Sets a savepoint.
    pub savepoint: u32,
    /// Goes back to a savepoint.
    pub back_to_savepoint: u32,
    /// Commits.
    pub commit: u32,
    /// Rolls back.
    pub rollback: u32,
    /// Prepares a transaction for a two-phase commit.
    pub prepare: u32,
    /// Commits or rolls back a prepared transaction.
    pub decide: u32,
    /// Takes a checkpoint.
    pub checkpoint: u32,
    /// Purges.
    pub purge: u32,
    /// Creates a table.
    pub create: u32,
    /// Drops a table.
    pub drop: u32,
    /// Truncates a table.
    pub truncate: u32,
    /// Renames a table.
    pub rename: u32,
    /// Sets an auto-increment counter.
    pub set_counter: u32,
}

/// How the keys of new rows are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keys {
    /// Ascending, with gaps.
    Ascending,
    /// Random.
    Random,
    /// From the table's auto-increment counter.
    Automatic,
}

/// A workload.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The name of its kind, one of [`FAMILIES`].
    pub family: &'static str,
    /// Its number.
    pub number: u64,
    /// The seed of all workloads.
    pub seed: u64,
    /// The number of steps after the first tables are filled.
    pub steps: u32,
    /// The frequencies of the steps.
    pub weights: Weights,
    /// How the keys of new rows are chosen.
    pub keys: Keys,
    /// The number of transactions that may be open at a time.
    pub sessions: u32,
    /// The tables at the beginning.
    pub tables: Vec<Kind>,
    /// The number of rows of each table at the beginning.
    pub filled: u32,
    /// The maximum number of rows in a table.
    pub most_rows: u32,
    /// The maximum number of padding bytes in a row.
    pub most_pad: u32,
    /// The maximum number of bytes in a large value.
    pub most_large: u32,
    /// The size of a log segment, in bytes.
    pub segment_bytes: u64,
    /// Whether snapshots are held and read during the workload: in every second round of the families.
    pub holds_snapshots: bool,
}

/// The kinds of workloads.
pub const FAMILIES: [&str; 13] = [
    "inserts",
    "updates",
    "deletes",
    "large-values",
    "splits-and-merges",
    "definitions",
    "truncates",
    "interleaved",
    "savepoints",
    "auto-increment",
    "larger-than-pool",
    "prepared",
    "everything",
];

const PLAIN: Kind = Kind {
    large: false,
    indexes: false,
};
const INDEXED: Kind = Kind {
    large: false,
    indexes: true,
};
const LARGE: Kind = Kind {
    large: true,
    indexes: false,
};
const FULL: Kind = Kind {
    large: true,
    indexes: true,
};

impl Plan {
    /// Draws workload `number` of a seed; the families take turns.
    ///
    /// `size` scales the number of steps, in percent.
    #[must_use]
    pub fn new(seed: u64, number: u64, size: u32) -> Plan {
        let mut dice = Dice::new(seed, number);
        let family = FAMILIES[(number % FAMILIES.len() as u64) as usize];
        let usual = Weights {
            insert: 10,
            update: 6,
            delete: 3,
            commit: 5,
            rollback: 1,
            checkpoint: 1,
            purge: 1,
            ..Weights::default()
        };
        let mut plan = Plan {
            family,
            number,
            seed,
            steps: 70,
            weights: usual,
            keys: [Keys::Ascending, Keys::Random][dice.below(2) as usize],
            sessions: 1 + dice.below(2),
            tables: vec![[PLAIN, INDEXED, LARGE, FULL][dice.below(4) as usize]],
            filled: 10,
            most_rows: 120,
            most_pad: [100, 900, 3_000][dice.below(3) as usize],
            most_large: 12_000,
            segment_bytes: [16 << 10, 32 << 10, 64 << 10, 256 << 10][dice.below(4) as usize],
            holds_snapshots: (number / FAMILIES.len() as u64) % 2 == 1,
        };
        let weights = &mut plan.weights;
        match family {
            "inserts" => (weights.update, weights.delete) = (1, 1),
            "updates" => (weights.insert, weights.update, plan.filled) = (2, 16, 40),
            "deletes" => {
                (weights.insert, weights.delete, weights.clear) = (3, 10, 2);
                (weights.purge, plan.filled) = (3, 60);
            }
            "large-values" => {
                (plan.tables, plan.most_large, plan.filled) = (vec![FULL], 60_000, 4);
            }
            "splits-and-merges" => {
                (weights.insert, weights.clear, weights.purge) = (30, 3, 4);
                (plan.most_pad, plan.keys) = (3_700, Keys::Random);
                (plan.filled, plan.most_rows, plan.sessions) = (40, 200, 1);
            }
            "definitions" => {
                (weights.create, weights.drop, weights.rename) = (4, 3, 2);
                plan.tables = vec![PLAIN, FULL];
            }
            "truncates" => (weights.truncate, plan.tables) = (4, vec![INDEXED, FULL]),
            "interleaved" => {
                (plan.sessions, plan.tables) = (4, vec![INDEXED, FULL]);
                (weights.commit, weights.rollback) = (3, 2);
            }
            "savepoints" => (weights.savepoint, weights.back_to_savepoint) = (6, 5),
            "auto-increment" => (plan.keys, weights.set_counter) = (Keys::Automatic, 2),
            "larger-than-pool" => {
                (plan.filled, plan.most_rows, plan.most_pad) = (380, 700, 3_700);
                (plan.tables, plan.keys, plan.steps) = (vec![INDEXED], Keys::Random, 40);
                weights.clear = 1;
                // Reading all tables by a snapshot would be most of the work.
                plan.holds_snapshots = false;
            }
            "prepared" => {
                (weights.prepare, weights.decide, weights.commit) = (5, 4, 2);
                (weights.savepoint, weights.back_to_savepoint) = (2, 1);
                (plan.sessions, plan.tables) = (3, vec![INDEXED, FULL]);
                plan.filled = 30;
            }
            _ => {
                *weights = Weights {
                    clear: 1,
                    prepare: 1,
                    decide: 1,
                    savepoint: 3,
                    back_to_savepoint: 2,
                    checkpoint: 2,
                    create: 1,
                    drop: 1,
                    truncate: 1,
                    rename: 1,
                    set_counter: 1,
                    ..usual
                };
                (plan.sessions, plan.tables) = (3, vec![PLAIN, FULL]);
                plan.keys =
                    [Keys::Ascending, Keys::Random, Keys::Automatic][dice.below(3) as usize];
            }
        }
        plan.steps = (plan.steps * size / 100).max(1);
        plan.filled = (plan.filled * size.min(100) / 100).max(1);
        plan
    }

    /// The options of its database: no background threads, the smallest pool, small segments.
    #[must_use]
    pub fn options(&self) -> Options {
        Options {
            pool_bytes: 1 << 20,
            log_bytes: 1 << 20,
            log_segment_bytes: Some(self.segment_bytes),
            lock_wait_timeout: std::time::Duration::ZERO,
            background: false,
            ..Options::default()
        }
    }
}
