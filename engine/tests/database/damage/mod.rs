//! Damage, full disks and the state after a crash.

mod another_database;
mod damaged_tables;
mod failed_drops;
mod full_disk;
mod newer_tables;
mod recovery_reads;
mod redo_parts;
pub(crate) mod reopened;
mod space_given_back;
mod unread_quarantine;
