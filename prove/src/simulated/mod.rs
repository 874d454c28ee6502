//! Durability on a simulated disk: power loss at every moment, calls that fail, damage.
//!
//! | file | holds |
//! |---|---|
//! | `workload.rs` | small workloads of many kinds, by seed |
//! | `player.rs`, `player/` | plays a workload and keeps the model beside it; prepared transactions, held snapshots |
//! | `model.rs`, `found.rs` | what must be in the database; what is in it |
//! | `image.rs` | a disk after a crash: checked, recovered, compared |
//! | `played.rs` | a workload that ran, with the disk at each of its moments |
//! | `power_loss.rs` | crashes at every moment of a workload and of recoveries |
//! | `io_errors.rs` | every call fails, and the disk is full at every point |
//! | `damage.rs` | flipped bits, stale and misplaced writes |
//! | `work.rs` | the runner of the proofs: threads, progress, totals |

pub mod damage;
pub mod found;
pub mod image;
pub mod io_errors;
pub mod model;
pub mod played;
pub mod player;
pub mod power_loss;
pub mod work;
pub mod workload;
