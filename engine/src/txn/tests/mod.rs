//! Tests of all of `txn` over real trees, pages and log in a temporary directory.

mod durable;
mod endurance;
mod escalation;
mod fixture;
mod locking;
mod meeting;
mod pruning;
mod purging;
mod savepoints;
mod schedule;
mod threads;
