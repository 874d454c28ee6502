//! Collects the dependencies between transactions, and finds violations that no level allows.

use std::collections::HashMap;

use super::chains::Chains;
use super::cycles::{Edge, Kind};
use super::{Found, Violation};
use crate::histories::history::{
    writer, Deed, Ending, Group, History, Key, Operation, Predicate, Transaction, Version,
    FIRST_LIST, FIRST_PLACE,
};
use peregrine_harness::level::Level;

/// The dependencies of a history.
///
/// Transactions are nodes. Under READ COMMITTED every scan is also a node, because a scan must see one consistent state
/// even though its transaction need not.
pub struct Dependencies<'a> {
    history: &'a History,
    chains: &'a Chains,
    level: Level,
    /// The number of nodes.
    pub nodes: usize,
    /// All dependencies.
    pub edges: Vec<Edge>,
    /// The transaction of each scan that is a node; these nodes follow those of the history.
    pub scans: Vec<usize>,
    /// The writes to each key of commits that a crash undid.
    lost: HashMap<Key, Vec<Lost>>,
}

/// A write that other transactions could see and that a crash undid.
struct Lost {
    commit_asked: u64,
    /// The place's state after the write.
    state: Option<Group>,
}

/// The latest version that a transaction has written to each key.
type Own = HashMap<Key, Version>;

impl<'a> Dependencies<'a> {
    /// Collects the dependencies.
    #[must_use]
    pub fn new(history: &'a History, chains: &'a Chains, level: Level, found: &mut Found) -> Self {
        let mut all = Self {
            history,
            chains,
            level,
            nodes: history.transactions.len(),
            edges: Vec::new(),
            scans: Vec::new(),
            lost: lost_writes(history, chains),
        };
        all.overwritten();
        let mut own = Own::new();
        for (number, transaction) in history.transactions.iter().enumerate() {
            if !chains.committed[number] {
                continue;
            }
            own.clear();
            for operation in &transaction.operations {
                all.look(number, transaction, operation, &mut own, found);
            }
        }
        all
    }

    /// Adds the dependencies between successive versions.
    fn overwritten(&mut self) {
        for (key, chain) in &self.chains.of {
            for pair in chain.versions.windows(2) {
                if let (Some(from), Some(to)) = (writer(pair[0]), writer(pair[1])) {
                    if from != to {
                        self.edges.push(Edge {
                            from,
                            to,
                            kind: Kind::Ww,
                            key: *key,
                        });
                    }
                }
            }
        }
    }

    fn look(
        &mut self,
        number: usize,
        transaction: &Transaction,
        operation: &Operation,
        own: &mut Own,
        found: &mut Found,
    ) {
        let since = match self.level {
            Level::ReadUncommitted | Level::ReadCommitted => operation.span.from,
            Level::RepeatableRead | Level::Serializable => transaction.began,
        };
        let look = Look {
            number,
            since,
            until: operation.span.to,
        };
        match &operation.deed {
            Deed::Read {
                key,
                found: version,
            } => {
                self.read(look, *key, *version, own, found);
            }
            Deed::Write {
                key,
                written,
                before,
                ..
            } => {
                self.replaced(look, *key, *before, own, found);
                own.insert(*key, *written);
            }
            Deed::ReadList { key, found: list } => {
                self.list_is_whole(look, *key, list, found);
                let version = list.last().copied().unwrap_or(0);
                self.read(look, *key, version, own, found);
            }
            Deed::Append {
                key,
                written,
                before,
            } => {
                self.list_is_whole(look, *key, before, found);
                self.replaced(look, *key, before.last().copied().unwrap_or(0), own, found);
                own.insert(*key, *written);
            }
            Deed::Scan {
                predicate,
                found: rows,
            } => self.scan(look, *predicate, rows, own, found),
        }
    }

    /// Checks that a list as read is a prefix of the final list.
    fn list_is_whole(&self, look: Look, key: Key, list: &[Version], found: &mut Found) {
        let chain = self.chains.of.get(&key).map(|c| &c.versions[1..]);
        if chain.is_some_and(|chain| !chain.starts_with(list)) {
            // `version_is_right` reports elements of uncommitted writers.
            let all_committed = list
                .iter()
                .filter_map(|version| writer(*version))
                .all(|writer| self.chains.committed.get(writer) == Some(&true));
            if all_committed {
                found.add(Violation::LostUpdate, || {
                    format!("T{} saw list {key} with elements that are not there in this order at the end", look.number)
                });
            }
        }
    }

    /// Checks a read of a version, and adds its dependencies.
    fn read(&mut self, look: Look, key: Key, version: Version, own: &Own, found: &mut Found) {
        if let Some(mine) = own.get(&key) {
            if version != *mine {
                found.add(Violation::OwnWrite, || {
                    format!(
                        "T{} read version {version} of {key} after it had itself written {mine}",
                        look.number
                    )
                });
            }
            return;
        }
        let Some(position) = self.version_is_right(look, key, version, false, found) else {
            return;
        };
        self.depend(look.number, key, version, position);
    }

    fn depend(&mut self, reader: usize, key: Key, version: Version, position: usize) {
        if let Some(from) = writer(version).filter(|writer| *writer != reader) {
            self.edges.push(Edge {
                from,
                to: reader,
                kind: Kind::Wr,
                key,
            });
        }
        // Under READ COMMITTED, another transaction may overwrite the version before the reader ends.
        if self.level >= Level::RepeatableRead || reader >= self.history.transactions.len() {
            if let Some(to) = self
                .chains
                .next_writer(key, position)
                .filter(|to| *to != reader)
            {
                self.edges.push(Edge {
                    from: reader,
                    to,
                    kind: Kind::Rw,
                    key,
                });
            }
        }
    }

    /// Checks the version that a write reports as replaced.
    fn replaced(&mut self, look: Look, key: Key, before: Version, own: &Own, found: &mut Found) {
        match own.get(&key) {
            Some(mine) if *mine != before => found.add(Violation::OwnWrite, || {
                format!(
                    "T{} replaced version {before} of {key} after it had itself written {mine}",
                    look.number
                )
            }),
            Some(_) => {}
            None => {
                // `overwritten` has already added the dependency.
                self.version_is_right(look, key, before, true, found);
            }
        }
    }

    /// Checks whether a reader could see a version, and returns the version's position.
    fn version_is_right(
        &self,
        look: Look,
        key: Key,
        version: Version,
        overwriting: bool,
        found: &mut Found,
    ) -> Option<usize> {
        let reader = look.number;
        if let Some(from) = writer(version).filter(|from| *from != reader) {
            let from_transaction = self.history.transactions.get(from)?;
            if !self.chains.committed[from] {
                match from_transaction.ending {
                    // The reader saw the version before it was durable, and the crash then lost it.
                    Ending::Unknown => found.seen_and_lost += 1,
                    _ => found.add(
                        if overwriting { Violation::DirtyWrite } else { Violation::AbortedRead },
                        || format!("T{reader} saw version {version} of {key}, and T{from}, which wrote it, was rolled back"),
                    ),
                }
                return None;
            }
            if from_transaction.commit_asked > look.until {
                found.add(
                    if overwriting { Violation::DirtyWrite } else { Violation::DirtyRead },
                    || format!("T{reader} saw version {version} of {key} before T{from}, which wrote it, asked to commit"),
                );
            }
        }
        let position = self.chains.position(key, version)?;
        if self.chains.is_intermediate(key, position)
            && writer(version).is_some_and(|from| from != reader)
        {
            found.add(Violation::IntermediateRead, || {
                format!(
                    "T{reader} saw version {version} of {key}, which its writer itself replaced"
                )
            });
        }
        if position < self.newest_before(key, look.since) {
            found.add(Violation::StaleRead, || {
                format!("T{reader} saw version {version} of {key}, though a later one had been committed before")
            });
        }
        Some(position)
    }

    /// Returns the last position with a commit acknowledged before `since`.
    fn newest_before(&self, key: Key, since: u64) -> usize {
        let Some(chain) = self.chains.of.get(&key) else {
            return 0;
        };
        let transaction = |position: usize| {
            writer(chain.versions[position]).and_then(|w| self.history.transactions.get(w))
        };
        // Writers ask to commit in the order of the versions, and get answers in nearly the same order.
        let asked = chain.versions.partition_point(|version| {
            writer(*version)
                .and_then(|w| self.history.transactions.get(w))
                .is_none_or(|t| t.commit_asked < since)
        });
        (1..asked)
            .rev()
            .find(|position| {
                transaction(*position)
                    .is_some_and(|t| t.ending == Ending::Committed && t.ended < since)
            })
            .unwrap_or(0)
    }

    /// Returns the first position for which the writer had not asked to commit before `until`.
    fn not_before(&self, key: Key, until: u64) -> usize {
        self.chains.of.get(&key).map_or(0, |chain| {
            chain.versions.partition_point(|version| {
                writer(*version)
                    .and_then(|w| self.history.transactions.get(w))
                    .is_none_or(|t| t.commit_asked < until)
            })
        })
    }

    /// Checks a scan: it returned each place, or saw a version of the place outside the predicate.
    fn scan(
        &mut self,
        look: Look,
        predicate: Predicate,
        rows: &[(Key, Version)],
        own: &Own,
        found: &mut Found,
    ) {
        let seen: HashMap<Key, Version> = rows.iter().copied().collect();
        if seen.len() != rows.len() {
            found.add(Violation::Predicate, || {
                format!("T{} saw a row twice in one scan", look.number)
            });
        }
        let reader = if self.level >= Level::RepeatableRead {
            look.number
        } else {
            self.scans.push(look.number);
            self.nodes += 1;
            self.nodes - 1
        };
        let chains = self.chains;
        for (key, chain) in chains.of.range(FIRST_PLACE..FIRST_LIST) {
            let matches = |position: usize| predicate.matches(chain.states[position]);
            match (seen.get(key), own.get(key)) {
                (version, Some(mine)) => {
                    let expected = chains
                        .position(*key, *mine)
                        .filter(|position| matches(*position))
                        .map(|_| *mine);
                    if version.copied() != expected {
                        found.add(Violation::OwnWrite, || {
                            format!("T{} scanned {predicate:?} and saw {version:?} of place {key}, and had itself written {mine}", look.number)
                        });
                    }
                }
                (Some(version), None) => {
                    let position = self.version_is_right(look, *key, *version, false, found);
                    let Some(position) = position else { continue };
                    if !matches(position) {
                        found.add(Violation::Predicate, || {
                            format!("T{} scanned {predicate:?} and saw version {version} of place {key}, which is not in it", look.number)
                        });
                    }
                    self.depend(reader, *key, *version, position);
                }
                (None, None) => self.absent(look, reader, *key, predicate, found),
            }
        }
    }

    /// Returns whether a crash undid a write that moved the place out of the predicate, with a commit asked for before
    /// `until`.
    fn lost(&self, key: Key, predicate: Predicate, until: u64) -> bool {
        self.lost.get(&key).is_some_and(|writes| {
            writes
                .iter()
                .any(|write| write.commit_asked < until && !predicate.matches(write.state))
        })
    }

    /// Checks a place that a scan did not return.
    ///
    /// The scan must have seen a possible version outside the predicate. The dependencies added are those that hold for
    /// each such version.
    fn absent(
        &mut self,
        look: Look,
        reader: usize,
        key: Key,
        predicate: Predicate,
        found: &mut Found,
    ) {
        let Some(chain) = self.chains.of.get(&key) else {
            return;
        };
        let matches = |position: &usize| predicate.matches(chain.states[*position]);
        // Other transactions never see a version that its writer replaced before it committed.
        let is_final = |position: &usize| !self.chains.is_intermediate(key, *position);
        if self.lost(key, predicate, look.until) {
            // The scan may have seen a deletion, or a move, that was not durable yet.
            found.seen_and_lost += 1;
            return;
        }
        let from = self.newest_before(key, look.since);
        let to = self.not_before(key, look.until).max(from + 1);
        let mut possible = (from..to)
            .filter(is_final)
            .filter(|position| !matches(position));
        let Some(first) = possible.next() else {
            found.add(Violation::Predicate, || {
                format!("T{} scanned {predicate:?} and missed place {key}, which was in it all the time", look.number)
            });
            return;
        };
        let last = possible.next_back().unwrap_or(first);
        if let Some(from) = writer(chain.versions[first]).filter(|from| *from != look.number) {
            self.edges.push(Edge {
                from,
                to: reader,
                kind: Kind::Wr,
                key,
            });
        }
        let next = (last + 1..chain.versions.len())
            .filter(is_final)
            .find(matches)
            .and_then(|position| writer(chain.versions[position]));
        if let Some(to) = next.filter(|to| *to != look.number) {
            self.edges.push(Edge {
                from: reader,
                to,
                kind: Kind::Rw,
                key,
            });
        }
    }
}

fn lost_writes(history: &History, chains: &Chains) -> HashMap<Key, Vec<Lost>> {
    let mut lost: HashMap<Key, Vec<Lost>> = HashMap::new();
    for (number, transaction) in history.transactions.iter().enumerate() {
        if transaction.ending != Ending::Unknown || chains.committed[number] {
            continue;
        }
        for operation in &transaction.operations {
            if let Deed::Write { key, state, .. } = operation.deed {
                let commit_asked = transaction.commit_asked;
                lost.entry(key).or_default().push(Lost {
                    commit_asked,
                    state,
                });
            }
        }
    }
    lost
}

/// A read, with the range of versions that it must and may see.
#[derive(Clone, Copy)]
struct Look {
    number: usize,
    /// The read must see all commits acknowledged before this time.
    since: u64,
    /// The read can't see commits asked for after this time.
    until: u64,
}
