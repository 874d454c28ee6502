//! Which processor client and server threads run on.
//!
//! With few client threads, most of a short query's time can go into waking a thread on another
//! processor (in a virtual machine tens of microseconds), and whether the scheduler puts client and
//! server thread together or apart changes by chance from run to run, by a factor of three. So each
//! client thread and the server's thread for it are kept together on one processor, the pairs dealt
//! out to the processors in turn: then a run measures the engine, and no engine is lucky.

use rustix::thread::{sched_getaffinity, sched_setaffinity, CpuSet, Pid};
use serde::{Deserialize, Serialize};

/// Where threads run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Placement {
    /// Each client thread together with its server thread, the pairs dealt out to the processors.
    Paired,
    /// Wherever the scheduler likes.
    Free,
}

impl Placement {
    /// Its name in options and results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Paired => "paired",
            Self::Free => "free",
        }
    }
}

/// The processors that this program may use.
#[must_use]
pub fn processors() -> Vec<usize> {
    sched_getaffinity(None).map_or_else(
        |_| Vec::new(),
        |set| (0..CpuSet::MAX_CPU).filter(|at| set.is_set(*at)).collect(),
    )
}

/// Keeps a thread (the calling one, if none is named) on `processors` from now on.
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
