//! Trees and their rows.

use proptest::prelude::*;

use super::*;

fn of(paths: &[&[u32]]) -> DraftTree {
    let mut tree = DraftTree::default();
    paths.iter().for_each(|path| tree.add(path));
    tree
}

#[test]
fn a_longest_path_comes_first_and_branches_follow_what_they_leave() {
    let tree = of(&[&[1, 2], &[1, 3, 4, 5], &[6], &[1, 3, 7]]);
    let piece = |tokens: &[u32], after, parent, depth| Piece {
        tokens: tokens.to_vec(),
        after,
        parent,
        depth,
    };
    let rows = tree.rows();
    let expected = [
        piece(&[1, 3, 4, 5], 0, None, 1),
        piece(&[6], 0, None, 1),
        piece(&[2], 1, Some(0), 2),
        piece(&[7], 2, Some(0), 3),
    ];
    assert_eq!(rows.pieces, expected);
    assert_eq!(DraftTree::from(vec![1, 2, 3]).rows().pieces.len(), 1);
    assert_eq!(DraftTree::default().rows(), TreeRows::default());
}

#[test]
fn the_likeliest_tokens_are_kept_with_the_path_to_them() {
    let tree = of(&[&[1, 2, 3], &[4, 5], &[6]]);
    let nodes = tree.by_chance((0.5, 0.4));
    // 1: 0.5; 2: 0.25; 4: 0.2; 3: 0.125; 6: 0.12; 5: 0.1
    let kept = |count| tree.first(&nodes, count);
    assert_eq!(kept(3), of(&[&[1, 2], &[4]]));
    assert_eq!(kept(5), of(&[&[1, 2, 3], &[4], &[6]]));
    assert_eq!(kept(9), tree);
    assert_eq!(tree.within(1, 6), of(&[&[1], &[4]]));
    assert_eq!(tree.within(3, 5), of(&[&[1, 2, 3], &[4]]));
}

#[test]
fn a_step_shows_which_tokens_were_right() {
    let tree = of(&[&[1, 2, 3], &[1, 4], &[6]]);
    /// Tokens, accepted, likeliest ones and alternatives.
    type Row = (&'static [u32], usize, (usize, usize), (usize, usize));
    let rows: [Row; 6] = [
        (&[1, 2, 3, 9], 3, (3, 3), (0, 0)),
        (&[1, 2, 9], 2, (2, 3), (0, 0)),
        (&[1, 4, 9], 2, (1, 2), (1, 1)),
        (&[1, 9], 1, (1, 2), (0, 1)),
        (&[6, 9], 1, (0, 1), (1, 1)),
        (&[9], 0, (0, 1), (0, 1)),
    ];
    for (tokens, accepted, first, other) in rows {
        assert_eq!(
            tree.follow(tokens, accepted).1,
            Followed { accepted, first, other },
            "{tokens:?}"
        );
    }
    let chain = DraftTree::from(vec![1, 2]);
    for (tokens, accepted) in [(&[1, 2, 3][..], 2), (&[1, 3], 1), (&[2], 0)] {
        assert_eq!(chain.follow(tokens, accepted).1, Followed::chain(2, accepted), "{tokens:?}");
    }
}

proptest! {
    /// The rows of a tree's pieces are its paths: a piece begins after a row of an earlier piece, and the tokens
    /// up to each row are a path of the tree.
    #[test]
    fn the_rows_of_a_tree_are_its_paths(
        paths in prop::collection::vec(prop::collection::vec(0_u32..3, 1..6), 1..7)
    ) {
        let mut tree = DraftTree::default();
        paths.iter().for_each(|path| tree.add(path));
        let rows = tree.rows();
        let mut found: Vec<Vec<u32>> = vec![Vec::new()];
        for piece in &rows.pieces {
            prop_assert_eq!(found[piece.after].len() + 1, piece.depth);
            let mut path = found[piece.after].clone();
            for token in &piece.tokens {
                path.push(*token);
                found.push(path.clone());
            }
        }
        let longest = paths.iter().map(Vec::len).max();
        prop_assert_eq!(Some(rows.pieces[0].tokens.len()), longest);
        for path in &paths {
            for end in 1..=path.len() {
                prop_assert!(found.iter().any(|found| found[..] == path[..end]), "{:?}", path);
            }
        }
        prop_assert_eq!(found.len(), tree.len() + 1);
    }
}
