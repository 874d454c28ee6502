//! A scan by several threads, of one snapshot.
//!
//! A scan begins in the caller's thread alone. It turns parallel only when it has read many leaves that their zone maps
//! could not replace. Then it cuts the rest of its range into parts, at keys of inner nodes. Helper threads and the
//! caller take one part after the other. The helpers borrow the caller's transaction, which holds the snapshot for all.

use crate::error::{Error, Result};
use crate::knobs;
use crate::read::aggregate::plan::Totals;
use crate::read::aggregate::scan::{Scan, Source};
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::table::shared::Scans;
use crate::txn::{SnapshotReader, TreeTransaction};

/// Scans the range from `from` up to, not including, `to`.
pub(super) fn run(
    txn: &TreeTransaction,
    source: &Source<'_>,
    scans: &Scans,
    from: Vec<u8>,
    to: Option<Vec<u8>>,
) -> Result<Totals> {
    let mut scan = Scan::new(source, txn.versions(), Some(txn));
    let mut leaves = source.leaves(from, to.clone());
    let alone = scans.most() == 1;
    let at_first = match alone {
        true => usize::MAX,
        false => knobs::leaves_alone(),
    };
    if scan.run(&mut leaves, at_first)? {
        return Ok(scan.totals);
    }
    // The last leaf read may be the last of the range.
    let Some(from) = leaves.rest() else {
        return Ok(scan.totals);
    };
    let cuts = source
        .tree
        .cuts(&from, to.as_deref(), knobs::parts_a_thread() * scans.most())?;
    let helpers = scans.helpers(cuts.len());
    if helpers.count() == 0 {
        scan.run(&mut leaves, usize::MAX)?;
        return Ok(scan.totals);
    }
    let parts = Parts {
        from,
        cuts,
        to,
        next: AtomicUsize::new(0),
    };
    let readers: Vec<SnapshotReader<'_>> = (0..helpers.count()).map(|_| txn.reader()).collect();
    crate::sync::thread::scope(|scope| {
        let parts = &parts;
        let mut running = Vec::with_capacity(readers.len());
        for reader in readers {
            let name = crate::sync::thread::Builder::new().name("peregrine-scan".into());
            let helper = name.spawn_scoped(scope, move || {
                let mut scan = Scan::new(source, reader.versions(), None);
                parts.take(&mut scan, source).map(|()| scan.totals)
            });
            match helper {
                Ok(helper) => running.push(helper),
                Err(error) => {
                    // The threads that did start take all parts.
                    tracing::warn!(%error, "no thread for a part of a scan");
                    break;
                }
            }
        }
        let mut result = parts.take(&mut scan, source);
        for helper in running {
            match helper.join() {
                Ok(Ok(totals)) => scan.totals.merge(&totals),
                // A thread that stopped only because another failed has not the cause.
                Ok(Err(error)) if matches!(result, Ok(()) | Err(Error::Interrupted)) => {
                    result = Err(error);
                }
                Ok(Err(_)) => {}
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        result
    })?;
    Ok(scan.totals)
}

/// A range, cut into parts.
struct Parts {
    from: Vec<u8>,
    cuts: Vec<Vec<u8>>,
    to: Option<Vec<u8>>,
    next: AtomicUsize,
}

impl Parts {
    /// Scans part after part, until none is left.
    fn take(&self, scan: &mut Scan<'_>, source: &Source<'_>) -> Result<()> {
        loop {
            let n = self.next.fetch_add(1, Ordering::Relaxed);
            if n > self.cuts.len() {
                return Ok(());
            }
            let from = match n.checked_sub(1) {
                None => &self.from,
                Some(before) => &self.cuts[before],
            };
            let to = self.cuts.get(n).or(self.to.as_ref());
            let mut leaves = source.leaves(from.clone(), to.cloned());
            if let Err(error) = scan.run(&mut leaves, usize::MAX) {
                source.stop.fail();
                return Err(error);
            }
        }
    }
}
