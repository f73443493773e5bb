//! Decision-tree regression, for devices whose time is a step function of the shape (the profiler
//! of HeteroLLM, arXiv 2501.14794, predicts NPU times this way).

/// A tree that predicts a number from `F` features. Each branch compares one feature with a
/// threshold; a leaf holds the mean of its training rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Tree<const F: usize = 4> {
    root: Branch,
}

#[derive(Clone, Debug, PartialEq)]
enum Branch {
    Leaf(f64),
    Split { feature: usize, threshold: f64, below: Box<Branch>, above: Box<Branch> },
}

/// Features and target of a training row.
pub type TreeRow<const F: usize> = ([f64; F], f64);

/// Maximum depth; deeper splits fit noise.
const DEPTH_MAX: usize = 16;

impl<const F: usize> Tree<F> {
    /// Grows a tree. Each split is the one that reduces the squared error most, with at least
    /// `leaf_rows` rows on either side.
    pub fn grow(rows: &[TreeRow<F>], leaf_rows: usize) -> Tree<F> {
        Tree { root: grow(rows.to_vec(), leaf_rows.max(1), 0) }
    }

    /// The prediction for these features.
    pub fn at(&self, features: &[f64; F]) -> f64 {
        let mut branch = &self.root;
        loop {
            match branch {
                Branch::Leaf(mean) => return *mean,
                Branch::Split { feature, threshold, below, above } => {
                    branch = if features[*feature] <= *threshold { below } else { above };
                }
            }
        }
    }

    /// Number of leaves.
    pub fn leaves(&self) -> usize {
        fn count(branch: &Branch) -> usize {
            match branch {
                Branch::Leaf(_) => 1,
                Branch::Split { below, above, .. } => count(below) + count(above),
            }
        }
        count(&self.root)
    }
}

/// The tree with the minimum leaf size (1, 2 or 4 rows) that predicts left-out rows best, and for
/// each row predicted − true when its fold, a fifth of the rows, is left out.
pub fn cross_validated<const F: usize>(rows: &[TreeRow<F>]) -> (Tree<F>, Vec<f64>) {
    let mut best: Option<(f64, usize, Vec<f64>)> = None;
    for leaf_rows in [1, 2, 4] {
        let differences = left_out(rows, leaf_rows);
        let sum: f64 = differences.iter().map(|d| d.abs()).sum();
        if best.as_ref().is_none_or(|(known, ..)| sum < *known) {
            best = Some((sum, leaf_rows, differences));
        }
    }
    let (leaf_rows, differences) = best.map_or((1, Vec::new()), |(_, l, d)| (l, d));
    (Tree::grow(rows, leaf_rows), differences)
}

const FOLDS: usize = 5;

/// Predicted − true of each row, by a tree trained without the row's fold.
fn left_out<const F: usize>(rows: &[TreeRow<F>], leaf_rows: usize) -> Vec<f64> {
    if rows.len() < 2 {
        return Vec::new();
    }
    let folds = FOLDS.min(rows.len());
    // The shift spreads the repeating rows of a grid over all folds.
    let fold_of = |i: usize| (i + i / folds) % folds;
    let fold = |fold: usize| {
        let (unseen, seen): (Vec<_>, Vec<_>) =
            rows.iter().enumerate().partition(|(i, _)| fold_of(*i) == fold);
        let seen: Vec<TreeRow<F>> = seen.into_iter().map(|(_, row)| *row).collect();
        let tree = Tree::grow(&seen, leaf_rows);
        let differences =
            unseen.into_iter().map(|(_, (features, truth))| tree.at(features) - truth);
        differences.collect::<Vec<_>>()
    };
    (0..folds).flat_map(fold).collect()
}

fn grow<const F: usize>(rows: Vec<TreeRow<F>>, leaf_rows: usize, depth: usize) -> Branch {
    let mean = rows.iter().map(|r| r.1).sum::<f64>() / rows.len().max(1) as f64;
    if depth == DEPTH_MAX || rows.len() < 2 * leaf_rows {
        return Branch::Leaf(mean);
    }
    let error: f64 = rows.iter().map(|r| (r.1 - mean).powi(2)).sum();
    let splits = (0..F).filter_map(|feature| best_split(&rows, feature, leaf_rows));
    let best = splits.min_by(|a, b| a.error.total_cmp(&b.error));
    let Some(Split { feature, threshold, .. }) =
        best.filter(|s| s.error < error * 0.999_999 - 1e-15)
    else {
        return Branch::Leaf(mean);
    };
    let (below, above) = rows.into_iter().partition(|r| r.0[feature] <= threshold);
    Branch::Split {
        feature,
        threshold,
        below: Box::new(grow(below, leaf_rows, depth + 1)),
        above: Box::new(grow(above, leaf_rows, depth + 1)),
    }
}

struct Split {
    feature: usize,
    threshold: f64,
    error: f64,
}

/// The threshold of a feature with the least squared error summed over both sides.
fn best_split<const F: usize>(
    rows: &[TreeRow<F>],
    feature: usize,
    leaf_rows: usize,
) -> Option<Split> {
    let mut sorted: Vec<(f64, f64)> = rows.iter().map(|r| (r.0[feature], r.1)).collect();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    let total: f64 = sorted.iter().map(|r| r.1).sum();
    let squares: f64 = sorted.iter().map(|r| r.1 * r.1).sum();
    let mut best: Option<Split> = None;
    let mut sum = 0.0;
    for at in 1..sorted.len() {
        sum += sorted[at - 1].1;
        let (left, right) = (at, sorted.len() - at);
        if sorted[at].0 <= sorted[at - 1].0 || left < leaf_rows || right < leaf_rows {
            continue;
        }
        let rest = total - sum;
        let error = squares - sum * sum / left as f64 - rest * rest / right as f64;
        if best.as_ref().is_none_or(|b| error < b.error) {
            best =
                Some(Split { feature, threshold: sorted[at - 1].0.midpoint(sorted[at].0), error });
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_function_is_recovered() {
        let law = |x: f64, y: f64| {
            if x < 10.0 {
                1.0
            } else if y < 3.0 {
                2.0
            } else {
                7.0
            }
        };
        let rows: Vec<TreeRow<2>> = (0..200)
            .map(|i| ((i % 20) as f64, (i / 20) as f64))
            .map(|(x, y)| ([x, y], law(x, y)))
            .collect();
        let (tree, errors) = cross_validated(&rows);
        assert_eq!(tree.leaves(), 3);
        for (x, y) in [(3.2, 5.5), (9.4, 0.0), (12.0, 1.0), (19.0, 9.0)] {
            assert_eq!(tree.at(&[x, y]), law(x, y), "{x} {y}");
        }
        assert!(errors.iter().all(|e| e.abs() < 1e-9));
    }

    #[test]
    fn errors_of_left_out_rows_show_the_noise() {
        let noise = |i: usize| if (i * 7919 / 13).is_multiple_of(2) { 0.3 } else { -0.3 };
        let rows: Vec<TreeRow<1>> = (0..100).map(|i| ([i as f64], noise(i))).collect();
        let (_, errors) = cross_validated(&rows);
        let mean = errors.iter().map(|e| e.abs()).sum::<f64>() / errors.len() as f64;
        assert!(mean > 0.2, "noise of 0.3 cannot be predicted, but the error is {mean}");
    }

    #[test]
    fn no_rows_and_one_row_grow_a_leaf() {
        assert_eq!(Tree::<1>::grow(&[], 1).at(&[1.0]), 0.0);
        assert_eq!(cross_validated(&[([1.0], 4.0)]).0.at(&[9.0]), 4.0);
    }
}
