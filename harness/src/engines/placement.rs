//! Chooses the processors for client and server threads.
//!
//! With few client threads, waking a thread on another processor can take most of a short query's time: tens of
//! microseconds in a virtual machine. Whether the scheduler puts client and server thread on one processor changes by
//! chance from run to run, which changes rates by a factor of three. The harness therefore pins each client thread and
//! its server thread to one processor, and assigns the pairs to the processors in turn. A run then measures the engine
//! and not chance.

use rustix::thread::{sched_getaffinity, sched_setaffinity, CpuSet, Pid};
use serde::{Deserialize, Serialize};

/// The processors of the threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Placement {
    /// Each client thread shares a processor with its server thread; the pairs are spread over the processors.
    Paired,
    /// The scheduler chooses.
    Free,
}

impl Placement {
    /// Returns its name in options and results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Paired => "paired",
            Self::Free => "free",
        }
    }
}

/// Returns the processors that this program may use.
#[must_use]
pub fn processors() -> Vec<usize> {
    sched_getaffinity(None).map_or_else(
        |_| Vec::new(),
        |set| (0..CpuSet::MAX_CPU).filter(|at| set.is_set(*at)).collect(),
    )
}

/// Pins a thread (the calling one if `thread` is `None`) to `processors`.
///
/// # Errors
/// When the operating system refuses.
pub fn keep_on(thread: Option<i32>, processors: &[usize]) -> std::io::Result<()> {
    let mut set = CpuSet::new();
    for processor in processors {
        set.set(*processor);
    }
    sched_setaffinity(thread.and_then(Pid::from_raw), &set)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_stays_where_it_is_kept() {
        let all = processors();
        assert!(!all.is_empty());
        let kept =
            std::thread::spawn(move || keep_on(None, &all[..1]).map(|()| (processors(), all)));
        let (now, all) = kept.join().expect("joined").expect("kept");
        assert_eq!(now, all[..1]);
        assert_eq!(processors(), all, "other threads are not touched");
    }
}
