//! What can fail at a point.

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
