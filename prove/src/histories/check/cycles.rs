//! Finds cycles of dependencies.

use std::collections::VecDeque;

use petgraph::algo::kosaraju_scc;
use petgraph::graph::{DiGraph, NodeIndex};
use petgraph::visit::EdgeRef;

use crate::histories::history::Key;

/// The kind of a dependency between two transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The transaction overwrote the other one's version.
    Ww,
    /// The transaction read the other one's version.
    Wr,
    /// The transaction overwrote a version that the other one had read (an anti-dependency).
    Rw,
}

/// A dependency: `to` follows `from`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edge {
    /// The earlier transaction.
    pub from: usize,
    /// The later transaction.
    pub to: usize,
    /// The kind of the dependency.
    pub kind: Kind,
    /// The key that causes it.
    pub key: Key,
}

/// Returns a cycle among the edges that `wanted` picks.
#[must_use]
pub fn any(nodes: usize, edges: &[Edge], wanted: impl Fn(Kind) -> bool) -> Option<Vec<Edge>> {
    let arcs = edges
        .iter()
        .enumerate()
        .filter(|(_, edge)| wanted(edge.kind))
        .map(|(number, edge)| (edge.from, edge.to, number));
    along(find(nodes, arcs)?, edges)
}

/// Returns a cycle in which no two anti-dependencies follow each other.
///
/// Each transaction has two nodes. A walk reaches one of them by an anti-dependency, and may not go on by another one;
/// it reaches the other node by any other edge. The cycles among these nodes are exactly the cycles sought.
#[must_use]
pub fn without_consecutive_rw(nodes: usize, edges: &[Edge]) -> Option<Vec<Edge>> {
    let arcs = edges.iter().enumerate().flat_map(|(number, edge)| {
        let (otherwise, by_rw) = (2 * edge.from, 2 * edge.from + 1);
        let arcs = if edge.kind == Kind::Rw {
            [Some((otherwise, 2 * edge.to + 1, number)), None]
        } else {
            [
                Some((otherwise, 2 * edge.to, number)),
                Some((by_rw, 2 * edge.to, number)),
            ]
        };
        arcs.into_iter().flatten()
    });
    along(find(2 * nodes, arcs)?, edges)
}

fn along(numbers: Vec<usize>, edges: &[Edge]) -> Option<Vec<Edge>> {
    numbers.into_iter().map(|n| edges.get(n).copied()).collect()
}

/// Returns the numbers of the arcs of a short cycle.
fn find(nodes: usize, arcs: impl Iterator<Item = (usize, usize, usize)>) -> Option<Vec<usize>> {
    let mut graph: DiGraph<(), usize> = DiGraph::with_capacity(nodes, nodes * 4);
    for _ in 0..nodes {
        graph.add_node(());
    }
    let mut loops = None;
    for (from, to, number) in arcs {
        if from == to {
            loops = Some(vec![number]);
        }
        graph.add_edge(NodeIndex::new(from), NodeIndex::new(to), number);
    }
    if loops.is_some() {
        return loops;
    }
    let components = kosaraju_scc(&graph);
    let smallest = components
        .iter()
        .filter(|component| component.len() > 1)
        .min_by_key(|component| component.len())?;
    let mut inside = vec![false; nodes];
    for node in smallest {
        inside[node.index()] = true;
    }
    // This loop searches the shortest way from one of the nodes back to it.
    let start = *smallest.first()?;
    let mut reached: Vec<Option<(NodeIndex, usize)>> = vec![None; nodes];
    let mut queue = VecDeque::from([start]);
    while let Some(node) = queue.pop_front() {
        for edge in graph.edges(node) {
            let to = edge.target();
            if to == start {
                let mut way = vec![*edge.weight()];
                let mut at = node;
                while let Some((before, number)) = reached[at.index()] {
                    way.push(number);
                    at = before;
                }
                way.reverse();
                return Some(way);
            }
            if inside[to.index()] && reached[to.index()].is_none() {
                reached[to.index()] = Some((node, *edge.weight()));
                queue.push_back(to);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn edge(from: usize, to: usize, kind: Kind) -> Edge {
        Edge {
            from,
            to,
            kind,
            key: 0,
        }
    }

    #[test]
    fn two_consecutive_anti_dependencies_are_allowed_and_one_is_not() {
        let skew = [edge(0, 1, Kind::Rw), edge(1, 0, Kind::Rw)];
        assert!(super::any(2, &skew, |_| true).is_some());
        assert!(without_consecutive_rw(2, &skew).is_none());
        let single = [edge(0, 1, Kind::Rw), edge(1, 0, Kind::Wr)];
        assert_eq!(without_consecutive_rw(2, &single).map(|c| c.len()), Some(2));
        // There are two anti-dependencies, but a dependency follows each.
        let apart = [
            edge(0, 1, Kind::Rw),
            edge(1, 2, Kind::Ww),
            edge(2, 3, Kind::Rw),
            edge(3, 0, Kind::Wr),
        ];
        assert!(without_consecutive_rw(4, &apart).is_some());
    }

    /// Searches closed walks without two consecutive anti-dependencies, by brute force.
    ///
    /// It computes the powers of the relation "a dependency, then perhaps one anti-dependency".
    fn by_composition(nodes: usize, edges: &[Edge]) -> bool {
        let mut step = vec![vec![false; nodes]; nodes];
        for first in edges.iter().filter(|e| e.kind != Kind::Rw) {
            step[first.from][first.to] = true;
            for second in edges
                .iter()
                .filter(|e| e.kind == Kind::Rw && e.from == first.to)
            {
                step[first.from][second.to] = true;
            }
        }
        for middle in 0..nodes {
            for from in 0..nodes {
                for to in 0..nodes {
                    step[from][to] |= step[from][middle] && step[middle][to];
                }
            }
        }
        (0..nodes).any(|node| step[node][node])
    }

    proptest! {
        #[test]
        fn the_two_places_find_what_composing_relations_finds(
            drawn in proptest::collection::vec((0_usize..7, 0_usize..7, 0_u8..5), 0..14)
        ) {
            let edges: Vec<Edge> = drawn
                .into_iter()
                .filter(|(from, to, _)| from != to)
                .map(|(from, to, kind)| edge(from, to, match kind {
                    0 => Kind::Ww,
                    1 => Kind::Wr,
                    _ => Kind::Rw,
                }))
                .collect();
            let found = without_consecutive_rw(7, &edges);
            prop_assert_eq!(found.is_some(), by_composition(7, &edges));
            if let Some(cycle) = found {
                for (n, edge) in cycle.iter().enumerate() {
                    let next = cycle[(n + 1) % cycle.len()];
                    prop_assert_eq!(edge.to, next.from);
                    prop_assert!(edge.kind != Kind::Rw || next.kind != Kind::Rw);
                }
            }
        }
    }
}
