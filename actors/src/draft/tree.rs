//! Drafts with alternatives: trees of tokens.

use std::cmp::Reverse;
use std::collections::VecDeque;

/// Tokens that may follow a text, with alternatives: each path from the root is a continuation (SpecInfer, Miao et
/// al., 2024, section 3). Of the tokens that follow one path, the first added is the likeliest. A tree without
/// alternatives is a chain.
///
/// ```
/// use lapwing_actors::draft::DraftTree;
///
/// let mut tree = DraftTree::from(vec![5, 6, 7]);
/// tree.add(&[5, 8]);
/// assert_eq!((tree.len(), tree.depth()), (4, 3));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DraftTree {
    /// Each after its parent.
    nodes: Vec<Node>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Node {
    token: u32,
    /// `None` after the text itself.
    parent: Option<usize>,
    /// Tokens from the text to this one, itself included.
    depth: usize,
    /// Number of its siblings that are likelier.
    rank: usize,
}

/// What a tree's verification shows about its probabilities.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Followed {
    /// Accepted tokens.
    pub(crate) accepted: usize,
    /// Of the likeliest tokens after an accepted path: how many were accepted, and how many were there.
    pub(crate) first: (usize, usize),
    /// Of their alternatives, where the likeliest token was rejected: the same.
    pub(crate) other: (usize, usize),
}

impl Followed {
    /// Of a draft of `drafted` tokens without alternatives, the first `accepted` of which were accepted.
    pub(crate) fn chain(drafted: usize, accepted: usize) -> Followed {
        let tried = accepted + usize::from(accepted < drafted);
        Followed { accepted, first: (accepted, tried), other: (0, 0) }
    }
}

/// Consecutive tokens of a tree, which are rows at consecutive positions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) tokens: Vec<u32>,
    /// Row before the first token's, where row 0 is the latest token of the text, and the rows of the pieces follow
    /// in order.
    pub(crate) after: usize,
    /// The piece that has that row; `None` for row 0.
    pub(crate) parent: Option<usize>,
    /// Tokens from the text to the first one, itself included.
    pub(crate) depth: usize,
}

/// The rows of a tree: a longest path, and the branches that leave it or each other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TreeRows {
    /// A longest path first; each branch after the piece that it leaves.
    pub(crate) pieces: Vec<Piece>,
    /// The piece of each node.
    piece_of: Vec<usize>,
}

impl From<Vec<u32>> for DraftTree {
    fn from(tokens: Vec<u32>) -> DraftTree {
        let mut tree = DraftTree::default();
        tree.add(&tokens);
        tree
    }
}

impl DraftTree {
    /// Adds a continuation. Its first tokens may be there already.
    pub fn add(&mut self, path: &[u32]) {
        let mut at = None;
        for token in path {
            at = Some(self.child(at, *token).unwrap_or_else(|| self.push(at, *token)));
        }
    }

    /// Adds the continuations of another tree.
    pub fn merge(&mut self, other: &DraftTree) {
        let mut places: Vec<usize> = Vec::with_capacity(other.nodes.len());
        for Node { token, parent, .. } in &other.nodes {
            let at = parent.map(|parent| places[parent]);
            places.push(self.child(at, *token).unwrap_or_else(|| self.push(at, *token)));
        }
    }

    /// Number of tokens.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there is no token.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Tokens of a longest path.
    pub fn depth(&self) -> usize {
        self.nodes.iter().map(|node| node.depth).max().unwrap_or(0)
    }

    fn push(&mut self, parent: Option<usize>, token: u32) -> usize {
        let depth = parent.map_or(0, |parent| self.nodes[parent].depth) + 1;
        let rank = self.children(parent).count();
        self.nodes.push(Node { token, parent, depth, rank });
        self.nodes.len() - 1
    }

    fn children(&self, parent: Option<usize>) -> impl Iterator<Item = usize> {
        (0..self.nodes.len()).filter(move |node| self.nodes[*node].parent == parent)
    }

    fn child(&self, parent: Option<usize>, token: u32) -> Option<usize> {
        self.children(parent).find(|node| self.nodes[*node].token == token)
    }

    /// The nodes that a condition and all nodes before them keep.
    fn filtered(&self, keeps: impl Fn(usize) -> bool) -> DraftTree {
        let mut kept = DraftTree::default();
        let mut places: Vec<Option<usize>> = Vec::with_capacity(self.nodes.len());
        for (at, node) in self.nodes.iter().enumerate() {
            let parent = node.parent.map(|parent| places[parent]);
            let place = match parent {
                Some(None) => None,
                _ if !keeps(at) => None,
                parent => Some(kept.push(parent.flatten(), node.token)),
            };
            places.push(place);
        }
        kept
    }

    /// The paths of at most `depth` tokens, up to the first id outside the vocabulary.
    pub(crate) fn within(&self, depth: usize, vocab: usize) -> DraftTree {
        self.filtered(|at| self.nodes[at].depth <= depth && (self.nodes[at].token as usize) < vocab)
    }

    /// The probability that each token is accepted, if the likeliest token after an accepted path is accepted with
    /// probability `first`, and with probability `other` an alternative where the likelier ones are rejected.
    fn chances(&self, first: f64, other: f64) -> Vec<f64> {
        let mut chances: Vec<f64> = Vec::with_capacity(self.nodes.len());
        for Node { parent, rank, .. } in &self.nodes {
            let own = match rank {
                0 => first,
                rank => (1.0 - first) * (1.0 - other).powi(*rank as i32 - 1) * other,
            };
            chances.push(parent.map_or(1.0, |parent| chances[parent]) * own);
        }
        chances
    }

    /// The nodes, the likeliest first, each with its probability. No node comes before its parent.
    pub(crate) fn by_chance(&self, acceptance: (f64, f64)) -> Vec<(usize, f64)> {
        let mut nodes: Vec<(usize, f64)> =
            self.chances(acceptance.0, acceptance.1).into_iter().enumerate().collect();
        nodes.sort_by(|(_, a), (_, b)| b.total_cmp(a));
        nodes
    }

    /// The first `count` of `nodes`, which are those of [`by_chance`](DraftTree::by_chance).
    pub(crate) fn first(&self, nodes: &[(usize, f64)], count: usize) -> DraftTree {
        let kept = &nodes[..count.min(nodes.len())];
        self.filtered(|at| kept.iter().any(|(node, _)| *node == at))
    }

    /// Compares the tree with the tokens of a step, of which the first `accepted` are drafted ones. Returns the node
    /// of the last of those.
    pub(crate) fn follow(&self, tokens: &[u32], accepted: usize) -> (Option<usize>, Followed) {
        let (mut at, mut followed) = (None, Followed::default());
        for token in tokens {
            let alternatives = self.children(at).count().saturating_sub(1);
            if self.children(at).next().is_none() {
                break;
            }
            followed.first.1 += 1;
            let next = self.child(at, *token).filter(|_| followed.accepted < accepted);
            match next.map(|next| self.nodes[next].rank) {
                Some(0) => followed.first.0 += 1,
                rank => {
                    followed.other.0 += usize::from(rank.is_some());
                    followed.other.1 += rank.unwrap_or(alternatives);
                }
            }
            let Some(next) = next else { break };
            (at, followed.accepted) = (Some(next), followed.accepted + 1);
        }
        (at, followed)
    }

    /// The rows of the tree.
    pub(crate) fn rows(&self) -> TreeRows {
        let mut height = vec![1; self.nodes.len()];
        for (at, node) in self.nodes.iter().enumerate().rev() {
            if let Some(parent) = node.parent {
                height[parent] = height[parent].max(height[at] + 1);
            }
        }
        let mut rows = TreeRows { pieces: Vec::new(), piece_of: vec![0; self.nodes.len()] };
        // Nodes whose branches have no rows yet, with the row and the piece of each.
        let mut open = VecDeque::from([(None, 0, None)]);
        let mut row = 0;
        while let Some((from, after, parent)) = open.pop_front() {
            let mut children: Vec<usize> = self.children(from).collect();
            children.sort_by_key(|child| Reverse(height[*child]));
            // The first continues the piece of its parent, if that has one.
            for child in children.into_iter().skip(usize::from(from.is_some())) {
                let number = rows.pieces.len();
                let mut tokens = Vec::with_capacity(height[child]);
                let mut at = Some(child);
                while let Some(node) = at {
                    row += 1;
                    tokens.push(self.nodes[node].token);
                    rows.piece_of[node] = number;
                    open.push_back((Some(node), row, Some(number)));
                    let tallest = |node: &usize| (height[*node], Reverse(*node));
                    at = self.children(at).max_by_key(tallest);
                }
                rows.pieces.push(Piece { tokens, after, parent, depth: self.nodes[child].depth });
            }
        }
        rows
    }
}

impl TreeRows {
    /// The piece of a node.
    pub(crate) fn piece_of(&self, node: usize) -> usize {
        self.piece_of[node]
    }
}

#[cfg(test)]
mod tests;
