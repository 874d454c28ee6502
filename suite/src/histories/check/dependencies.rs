//! Who depends on whom, from what every committed transaction saw; and what no level allows, told on
//! the way.

use std::collections::HashMap;

use super::chains::Chains;
use super::cycles::{Edge, Kind};
use super::{Found, Violation};
use crate::behaviour::level::Level;
use crate::histories::history::{
    writer, Deed, Ending, Group, History, Key, Operation, Predicate, Transaction, Version,
    FIRST_LIST, FIRST_PLACE,
};

/// The dependencies of a history. Transactions are nodes; under READ COMMITTED every scan is a node of
/// its own too, since it must see one consistent state though its transaction need not.
pub struct Dependencies<'a> {
    history: &'a History,
    chains: &'a Chains,
    level: Level,
    /// Nodes so far.
    pub nodes: usize,
    /// All dependencies.
    pub edges: Vec<Edge>,
    /// Which transactions the nodes after those of the history belong to.
    pub scans: Vec<usize>,
    /// What commits wrote to each key that a crash undid.
    lost: HashMap<Key, Vec<Lost>>,
}

/// A write of a commit that others could see and a crash undid.
struct Lost {
    commit_asked: u64,
    /// Where it put the place.
    state: Option<Group>,
}

/// What a transaction has itself written so far.
type Own = HashMap<Key, Version>;

impl<'a> Dependencies<'a> {
    /// Collects them.
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

    /// Who overwrote whom.
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

    /// A list that was read must be the beginning of the list as it was at the end.
    fn list_is_whole(&self, look: Look, key: Key, list: &[Version], found: &mut Found) {
        let chain = self.chains.of.get(&key).map(|c| &c.versions[1..]);
        if chain.is_some_and(|chain| !chain.starts_with(list)) {
            // An element of somebody who did not commit is told where the version is judged.
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

    /// A read of one version, and what follows from it.
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
        // Under READ COMMITTED what was read may change before the transaction ends.
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

    /// What a write says that it replaced.
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
                // The order of versions has it already as a dependency.
                self.version_is_right(look, key, before, true, found);
            }
        }
    }

    /// Whether a version could be seen at all, and its place.
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
                    // Seen before it was durable, and then lost in the crash.
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

    /// The last position whose writer's commit had been acknowledged at `since`.
    fn newest_before(&self, key: Key, since: u64) -> usize {
        let Some(chain) = self.chains.of.get(&key) else {
            return 0;
        };
        let transaction = |position: usize| {
            writer(chain.versions[position]).and_then(|w| self.history.transactions.get(w))
        };
        // Commits are asked for in the order of the versions, and answered hardly out of it.
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

    /// The first position whose writer had not asked to commit at `until`.
    fn not_before(&self, key: Key, until: u64) -> usize {
        self.chains.of.get(&key).map_or(0, |chain| {
            chain.versions.partition_point(|version| {
                writer(*version)
                    .and_then(|w| self.history.transactions.get(w))
                    .is_none_or(|t| t.commit_asked < until)
            })
        })
    }

    /// A scan: for every place either its version was seen, or it was seen not to be asked for.
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

    /// Whether a commit that a crash undid took a place out of what a predicate asks for, and was
    /// asked for before `until`.
    fn lost(&self, key: Key, predicate: Predicate, until: u64) -> bool {
        self.lost.get(&key).is_some_and(|writes| {
            writes
                .iter()
                .any(|write| write.commit_asked < until && !predicate.matches(write.state))
        })
    }

    /// A place that a scan did not return: one of the versions that could be seen then, and that the
    /// predicate does not ask for, was there. What holds whichever it was is a dependency.
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
        // What a transaction itself replaced before it committed was never there for others.
        let is_final = |position: &usize| !self.chains.is_intermediate(key, *position);
        if self.lost(key, predicate, look.until) {
            // What was seen may be a deletion, or a move, that was not durable yet.
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

/// Who looks, and what it must and can see.
#[derive(Clone, Copy)]
struct Look {
    number: usize,
    /// What was committed before is to be seen.
    since: u64,
    /// What had not asked to commit by then can't be.
    until: u64,
}
