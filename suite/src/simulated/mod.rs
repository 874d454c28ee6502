//! Durability on a simulated disk: power loss at every moment, calls that fail, damage.
//!
//! | file | holds |
//! |---|---|
//! | `workload.rs` | small workloads of many kinds, by seed |
//! | `player.rs`, `player/` | plays one, and keeps the model beside it; what is prepared, what is held |
//! | `model.rs`, `found.rs` | what must be there, and what is |
//! | `image.rs` | a disk after a crash: checked, recovered, compared |
//! | `played.rs` | a workload that ran, the disk at every moment of it |
//! | `power_loss.rs` | crashes at every moment of a workload and of recoveries |
//! | `io_errors.rs` | every call failing, the disk full at every point |
//! | `damage.rs` | flipped bits, stale and misplaced writes |
//! | `work.rs` | how the proofs go through their workloads: threads, progress, totals |

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
