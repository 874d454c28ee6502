//! Compares the load generator with independent tools.
//!
//! sysbench runs the queries of `normal`; go-tpc runs its order entry and checks our tables. Each takes turns with our
//! own clients on the same server. Their figures must agree, or the processor time of the clients must explain the
//! difference.
//!
//! | file | holds |
//! |---|---|
//! | `turn.rs` | a client's figures of one turn, and the medians of several |
//! | `cell.rs` | compares our turns with a tool's |
//! | `tool.rs` | runs a tool and counts its processor time |
//! | `sysbench.rs`, `go_tpc.rs` | call each tool and read its output |
//! | `tables.rs` | fills the tables of a workload |
//! | `ours.rs` | a turn of our own clients |
//! | `reads.rs` | compares queries of `normal` with sysbench |
//! | `orders.rs` | compares order entry with go-tpc, which also checks our tables |

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
