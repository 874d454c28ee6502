//! Faults at points, and places where a thread may pause.

/// A fault that happens at a point of the engine by chance, only in threads of a schedule that asks for it
/// ("buggification", FoundationDB). Each happens where a real one does once in a year, so that the paths of errors are
/// taken as often as all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The system has no memory.
    NoMemory,
    /// All frames of the buffer pool are in use.
    NoFrame,
    /// The transaction is killed, and a moment later it is not killed any more.
    Killed,
}

/// Places where a thread of a schedule may pause. Each has its own chance: latches are taken a thousand times as often
/// as calls are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pause {
    /// While the thread holds a latch, or is in the barrier.
    Held,
    /// Between two steps: at a `Moment`.
    Moment,
    /// In a call to the operating system, as on a slow disk.
    Call,
}
