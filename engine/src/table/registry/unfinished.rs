//! Tables with records of transactions that could not be rolled back, because their undo can't be read.

use std::collections::BTreeMap;

use super::Registry;
use crate::error::{Error, Result};
use crate::ids::{TableId, TxId};
use crate::mvcc::Header;
use crate::tree::{LeafImage, Position, Tree};

impl Registry {
    /// Reads all tables, and notes those as damaged that have a record of one of these transactions.
    ///
    /// Also those that can't be read or are damaged otherwise, since their records are unknown. Takes as long as
    /// reading all tables does.
    pub(super) fn note_unfinished(&self, unfinished: &BTreeMap<TxId, Error>) -> Result<()> {
        for name in self.names() {
            let id = self.id_of(&name)?;
            if self.is_refused(id) {
                continue;
            }
            match self.unfinished_in(id, unfinished) {
                Ok(None) => {}
                Ok(Some(error)) | Err(error @ (Error::Corrupt { .. } | Error::Internal(_))) => {
                    self.damaged.lock().insert(id, error);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn unfinished_in(
        &self,
        id: TableId,
        unfinished: &BTreeMap<TxId, Error>,
    ) -> Result<Option<Error>> {
        let Some(table) = self.table_of(id)? else {
            return Ok(None);
        };
        let trees = table.trees.load();
        for tree in trees.all() {
            if let Some(error) = unfinished_in_tree(tree, unfinished)? {
                return Ok(Some(error));
            }
        }
        Ok(None)
    }
}

/// The error of a transaction that has a record in the tree.
fn unfinished_in_tree(tree: &Tree, unfinished: &BTreeMap<TxId, Error>) -> Result<Option<Error>> {
    let Some((oldest, _)) = unfinished.first_key_value() else {
        return Ok(None);
    };
    let mut image = LeafImage::new();
    let mut more = tree.copy_leaf(Position::First, &mut image)?;
    while more {
        if image.max_txid() >= oldest.0 {
            for i in 0..image.count() {
                let (header, _) = Header::decode(image.value(i))?;
                let of = header.txid().and_then(|txid| unfinished.get(&txid));
                if let Some(error) = of {
                    return Ok(Some(error.clone()));
                }
            }
        }
        more = tree.copy_next_leaf(&mut image)?;
    }
    Ok(None)
}
