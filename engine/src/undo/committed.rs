//! The committed version of a record in database files that no recovery has processed.

use std::collections::HashSet;

use crate::error::{Error, Result};
use crate::ids::{PageId, TxId, PAGE_SIZE};
use crate::mvcc::version::Header;
use crate::node::{Page, PageKind, BODY_SIZE, KIND};
use crate::undo::record::{Kind, UndoRecord};

/// Returns the payload of the newest version that none of the `running` transactions wrote; `None` if there is no
/// such row.
///
/// `page` reads undo pages. The `unfinished` transactions did not commit, and their undo is gone.
///
/// # Errors
/// Those of `page`; [`Error::Internal`] for damaged records, and for a record of an unfinished transaction.
pub(crate) fn committed_version(
    record: &[u8],
    running: &HashSet<TxId>,
    page: &mut dyn FnMut(PageId) -> Result<Box<Page>>,
    unfinished: &HashSet<TxId>,
) -> Result<Option<Vec<u8>>> {
    let mut value = record.to_vec();
    // Each version has its own undo record. A chain of more records than a file has bytes is a circle.
    for _ in 0..u32::MAX {
        let (header, payload) = Header::decode(&value)?;
        if header.txid().is_some_and(|txid| unfinished.contains(&txid)) {
            return Err(Error::Internal(
                "the row was changed by a transaction that did not commit, and what it was before \
                 is gone"
                    .into(),
            ));
        }
        if !header.txid().is_some_and(|txid| running.contains(&txid)) {
            return Ok((!header.deleted).then(|| payload.to_vec()));
        }
        let Some(at) = header.older() else {
            return Ok(None);
        };
        let page = page(at.page())?;
        let body = &page[PAGE_SIZE - BODY_SIZE..];
        let record = body
            .get(at.offset()..)
            .filter(|_| page[KIND] == PageKind::Undo as u8)
            .and_then(|bytes| UndoRecord::decode(at.page(), bytes));
        value = match record {
            Some(before) if before.kind == Kind::Previous => before.value.to_vec(),
            Some(before) if before.kind == Kind::Absent => return Ok(None),
            _ => {
                return Err(Error::Internal(format!(
                    "no undo record of a row at byte {} of page {}",
                    at.offset(),
                    at.page()
                )))
            }
        };
    }
    Err(Error::Internal("undo records that lead in a circle".into()))
}
