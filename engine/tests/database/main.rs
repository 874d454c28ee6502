//! The whole database through its public interface, against models.

mod aggregates;
mod ascii;
mod auto_increment;
mod bulk_insert;
mod check_in_use;
mod damaged_tables;
mod half_undone;
mod index_scans;
mod inspection;
mod judged_again;
mod larger_than_memory;
mod many_tables;
mod model;
mod narrow_copies;
mod newer_tables;
mod optimistic;
mod prepared;
mod read_ahead;
mod recovery_reads;
mod schemas;
mod serializable;
mod skip_locked;
mod space_given_back;
mod statements;
mod threads;
