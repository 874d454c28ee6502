//! The load generator beside tools that nobody here wrote: sysbench asks the queries of `normal`, go-tpc runs its
//! order entry and checks ours, each in turns with our own clients on the same server. What both find must agree,
//! or the processor time that each client takes must say why not.
//!
//! | file | holds |
//! |---|---|
//! | `turn.rs` | what a client did in one turn, and the medians of several |
//! | `cell.rs` | our turns beside a tool's, and whether they agree |
//! | `tool.rs` | runs a tool and counts its processor time |
//! | `sysbench.rs`, `go_tpc.rs` | how each is called, and what it says |
//! | `tables.rs` | fills the tables of a workload |
//! | `ours.rs` | a turn of our own clients |
//! | `reads.rs` | queries of `normal`, beside sysbench |
//! | `orders.rs` | order entry beside go-tpc, and its check of our tables |

mod cell;
mod go_tpc;
pub mod orders;
mod ours;
pub mod reads;
mod sysbench;
mod tables;
mod tool;
mod turn;

pub use self::cell::{Cell, Figures, Limits, Verdict};
pub use self::go_tpc::GoTpc;
pub use self::sysbench::Sysbench;
pub use self::turn::{Medians, Turn};
