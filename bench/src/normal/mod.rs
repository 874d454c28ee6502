//! The workload on table `normal`: a user-account table and thirteen read queries, as published in
//! the engine comparisons of 2007 to 2010.
//!
//! A row is a pure function of seed and id ([`generator`]). So the benchmark computes the right answer to every query
//! beforehand ([`answers`]) and checks every answer of a server against it. The table's definition and the queries are
//! in `workloads/normal.toml`.

pub mod answers;
pub mod check;
pub mod data_file;
pub mod fingerprint;
pub mod generator;
pub mod queries;

/// The number of countries: `country_id` is 1 to this.
pub const COUNTRIES: u16 = 200;

/// The number of states of each country: `state_id` is 1 to this.
pub const STATES: u8 = 50;

pub use answers::Answers;
pub use check::Check;
pub use generator::Generator;
pub use queries::Query;
