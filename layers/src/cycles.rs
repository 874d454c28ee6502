//! Cycles between files, and between folders.

use std::collections::{BTreeMap, BTreeSet};

use petgraph::algo::tarjan_scc;
use petgraph::graph::{DiGraph, NodeIndex};

use crate::Reference;

/// Files or folders, each of which names an item of every other, directly or through others.
pub type Cycle = BTreeSet<String>;

/// Returns the cycles between the files, or between their folders, as `of` maps a file to its node.
pub fn cycles(references: &BTreeSet<Reference>, of: impl Fn(&str) -> String) -> BTreeSet<Cycle> {
    let mut graph = DiGraph::<String, ()>::new();
    let mut nodes: BTreeMap<String, NodeIndex> = BTreeMap::new();
    for reference in references {
        let [from, to] = [&reference.from, &reference.to].map(|file| {
            let name = of(file);
            *nodes
                .entry(name.clone())
                .or_insert_with(|| graph.add_node(name))
        });
        graph.update_edge(from, to, ());
    }
    let found = tarjan_scc(&graph).into_iter();
    found
        .filter(|nodes| nodes.len() > 1)
        .map(|nodes| nodes.into_iter().map(|node| graph[node].clone()).collect())
        .collect()
}
