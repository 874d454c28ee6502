//! The order of each key's versions, from the version that each write reports as replaced.

use std::collections::{BTreeMap, HashMap};

use super::{Found, Violation};
use crate::histories::history::{
    first_group, writer, Deed, Ending, Group, History, Key, Version, FIRST_LIST, FIRST_PLACE,
};

/// The versions of a key; the first one is the key's initial version.
#[derive(Debug, Clone, Default)]
pub struct Chain {
    /// The versions, each replaced by the next.
    pub versions: Vec<Version>,
    /// For places: the group of the row in each version.
    pub states: Vec<Option<Group>>,
}

/// All chains.
#[derive(Debug, Default)]
pub struct Chains {
    /// By key.
    pub of: BTreeMap<Key, Chain>,
    /// The index of each version in its chain, without the initial versions.
    position: HashMap<Version, usize>,
    /// For each transaction, whether it counts as committed.
    pub committed: Vec<bool>,
}

/// The report of a write.
struct Written {
    before: Option<Version>,
    state: Option<Group>,
}

impl Chains {
    /// Follows the versions back from those that the closing transaction read.
    #[must_use]
    pub fn new(history: &History, found: &mut Found) -> Self {
        let writes = writes(history);
        let mut chains = Self {
            committed: vec![false; history.transactions.len()],
            ..Self::default()
        };
        let Some(closing) = history.transactions.last() else {
            return chains;
        };
        for operation in &closing.operations {
            let (key, backwards) = match &operation.deed {
                Deed::Read { key, found: last } => (*key, back(*key, *last, &writes, found)),
                Deed::ReadList { key, found: list } => (*key, list.iter().rev().copied().collect()),
                _ => continue,
            };
            chains.add(key, backwards, &writes);
        }
        chains.judge_endings(history, found);
        chains
    }

    fn add(
        &mut self,
        key: Key,
        backwards: Vec<Version>,
        writes: &HashMap<Version, (Key, Written)>,
    ) {
        let mut chain = Chain::default();
        chain.versions.push(0);
        let place = (FIRST_PLACE..FIRST_LIST).contains(&key);
        chain.states.push(place.then(|| first_group(key)).flatten());
        for version in backwards.into_iter().rev() {
            self.position.insert(version, chain.versions.len());
            chain.versions.push(version);
            chain
                .states
                .push(writes.get(&version).and_then(|(_, w)| w.state));
        }
        self.of.insert(key, chain);
    }

    /// Decides which transactions committed.
    ///
    /// They are those with an acknowledged commit. A crash may leave a commit unanswered; it counts if one of its
    /// versions is in a chain.
    fn judge_endings(&mut self, history: &History, found: &mut Found) {
        for (number, transaction) in history.transactions.iter().enumerate() {
            let (mut there, mut missing) = (None, None);
            for operation in &transaction.operations {
                if let Deed::Write { key, written, .. } | Deed::Append { key, written, .. } =
                    &operation.deed
                {
                    if self.position.contains_key(written) {
                        there = Some(*key);
                    } else {
                        missing = Some(*key);
                    }
                }
            }
            self.committed[number] = match transaction.ending {
                Ending::Committed => true,
                Ending::Aborted => false,
                Ending::Unknown => there.is_some(),
            };
            match (transaction.ending, there, missing) {
                (Ending::Aborted, Some(key), _) => found.add(
                    Violation::DirtyWrite,
                    || format!("T{number} was rolled back, and what it wrote to {key} was built on or stayed"),
                ),
                (Ending::Committed, _, Some(key)) => found.add(Violation::LostUpdate, || {
                    format!("T{number} committed, and what it wrote to {key} was overwritten unseen or lost")
                }),
                (Ending::Unknown, Some(kept), Some(lost)) => found.add(Violation::Torn, || {
                    format!("after the crash T{number}'s write to {kept} is there and that to {lost} is not")
                }),
                _ => {}
            }
        }
    }

    /// Returns the index of a version in the chain of `key`.
    #[must_use]
    pub fn position(&self, key: Key, version: Version) -> Option<usize> {
        let position = match version {
            0 => 0,
            _ => *self.position.get(&version)?,
        };
        let chain = self.of.get(&key)?;
        (chain.versions.get(position) == Some(&version)).then_some(position)
    }

    /// Returns the transaction that overwrote the version at `position`, ignoring later versions of the same writer.
    #[must_use]
    pub fn next_writer(&self, key: Key, position: usize) -> Option<usize> {
        let chain = self.of.get(&key)?;
        let own = writer(*chain.versions.get(position)?);
        chain.versions[position + 1..]
            .iter()
            .map(|version| writer(*version))
            .find(|next| *next != own)
            .flatten()
    }

    /// Returns whether the writer of the version at `position` overwrote it itself.
    #[must_use]
    pub fn is_intermediate(&self, key: Key, position: usize) -> bool {
        self.of.get(&key).is_some_and(|chain| {
            position > 0
                && chain.versions.get(position + 1).is_some_and(|next| {
                    writer(*next) == chain.versions.get(position).and_then(|v| writer(*v))
                })
        })
    }
}

/// Returns every version with its key and the report of its write.
fn writes(history: &History) -> HashMap<Version, (Key, Written)> {
    let mut writes = HashMap::new();
    for transaction in &history.transactions {
        for operation in &transaction.operations {
            match &operation.deed {
                Deed::Write {
                    key,
                    written,
                    before,
                    state,
                } => {
                    let write = Written {
                        before: Some(*before),
                        state: *state,
                    };
                    writes.insert(*written, (*key, write));
                }
                Deed::Append { key, written, .. } => {
                    let write = Written {
                        before: None,
                        state: None,
                    };
                    writes.insert(*written, (*key, write));
                }
                _ => {}
            }
        }
    }
    writes
}

/// Returns the versions from `last` back to the first.
fn back(
    key: Key,
    last: Version,
    writes: &HashMap<Version, (Key, Written)>,
    found: &mut Found,
) -> Vec<Version> {
    let mut versions = Vec::new();
    let mut at = last;
    while at != 0 {
        versions.push(at);
        match writes.get(&at) {
            Some((
                of,
                Written {
                    before: Some(before),
                    ..
                },
            )) if *of == key && versions.len() <= writes.len() => at = *before,
            _ => {
                found.add(Violation::DirtyWrite, || {
                    format!(
                        "version {at} of {key} was written by no operation that came to its end"
                    )
                });
                break;
            }
        }
    }
    versions
}
