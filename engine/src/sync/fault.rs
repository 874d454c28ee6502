//! What can fail at a point, and where a thread may stay for a while.

/// What fails at a point of the engine by chance, in threads of a schedule that asks for it, and nowhere else
/// ("buggification", FoundationDB). Each fails as in life at the same place, where it comes once in a year. So the ways
/// out of errors are as well-trodden as all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The system gives no memory.
    NoMemory,
    /// All frames of the buffer pool are in use.
    NoFrame,
    /// The transaction is killed; a moment later it is not any more.
    Killed,
}

/// Where a thread of a schedule may pause. Each has chances of its own: latches are taken a thousand times
/// where a call is made once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pause {
    /// With a latch, or in the barrier.
    Held,
    /// Between two steps: at a `Moment`.
    Moment,
    /// In a call to the operating system: the disk takes its time.
    Call,
}
