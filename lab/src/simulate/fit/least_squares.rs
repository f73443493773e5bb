//! Linear least squares with few unknowns.

/// x that minimises |A·x − b|² + damping·|x|², by Gaussian elimination of the normal equations.
pub(in crate::simulate) fn solve(a: &[Vec<f64>], b: &[f64], damping: f64) -> Vec<f64> {
    let n = a.first().map_or(0, Vec::len);
    let mut rows: Vec<Vec<f64>> = (0..n)
        .map(|i| {
            let mut row: Vec<f64> =
                (0..n).map(|j| a.iter().map(|equation| equation[i] * equation[j]).sum()).collect();
            row[i] += damping;
            row.push(a.iter().zip(b).map(|(equation, value)| equation[i] * value).sum());
            row
        })
        .collect();
    for column in 0..n {
        let largest =
            (column..n).max_by(|p, q| rows[*p][column].abs().total_cmp(&rows[*q][column].abs()));
        rows.swap(column, largest.unwrap_or(column));
        let pivot = rows[column].clone();
        for (at, row) in rows.iter_mut().enumerate() {
            if at != column && pivot[column] != 0.0 {
                let factor = row[column] / pivot[column];
                row.iter_mut().zip(&pivot).for_each(|(value, of)| *value -= factor * of);
            }
        }
    }
    let unknown = |i: usize| if rows[i][i] == 0.0 { 0.0 } else { rows[i][n] / rows[i][i] };
    (0..n).map(unknown).collect()
}

/// The inverse of a symmetric matrix with a positive diagonal, column by column.
pub(in crate::simulate) fn inverse(matrix: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let n = matrix.len();
    let mut rows: Vec<Vec<f64>> = (0..n)
        .map(|i| {
            let unit = (0..n).map(|j| if i == j { 1.0 } else { 0.0 });
            matrix[i].iter().copied().chain(unit).collect()
        })
        .collect();
    for column in 0..n {
        let largest =
            (column..n).max_by(|p, q| rows[*p][column].abs().total_cmp(&rows[*q][column].abs()));
        rows.swap(column, largest.unwrap_or(column));
        let factor = rows[column][column];
        rows[column].iter_mut().for_each(|value| *value /= factor);
        let pivot = rows[column].clone();
        for (_, row) in rows.iter_mut().enumerate().filter(|(at, _)| *at != column) {
            let factor = row[column];
            row.iter_mut().zip(&pivot).for_each(|(value, of)| *value -= factor * of);
        }
    }
    rows.into_iter().map(|row| row[n..].to_vec()).collect()
}

/// A pivot below this counts as zero.
const FLAT: f64 = 1e-3;

/// Number of linearly independent rows of a matrix with entries of the order of 1.
pub(super) fn rank(matrix: &[Vec<f64>]) -> usize {
    let mut rows = matrix.to_vec();
    let columns = rows.first().map_or(0, Vec::len);
    let mut rank = 0;
    while rank < rows.len().min(columns) {
        let places = (rank..rows.len()).flat_map(|row| (rank..columns).map(move |at| (row, at)));
        let size = |(row, at): &(usize, usize)| rows[*row][*at].abs();
        let Some((row, at)) = places.max_by(|a, b| size(a).total_cmp(&size(b))) else { break };
        if size(&(row, at)) < FLAT {
            break;
        }
        rows.swap(rank, row);
        rows.iter_mut().for_each(|row| row.swap(rank, at));
        let pivot = rows[rank].clone();
        for row in &mut rows[rank + 1..] {
            let factor = row[rank] / pivot[rank];
            row.iter_mut().zip(&pivot).for_each(|(value, of)| *value -= factor * of);
        }
        rank += 1;
    }
    rank
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_regression_line_is_found() {
        let a: Vec<Vec<f64>> = [0.0, 1.0, 2.0, 3.0].iter().map(|x| vec![1.0, *x]).collect();
        let x = solve(&a, &[1.0, 3.0, 5.0, 7.0], 0.0);
        assert!((x[0] - 1.0).abs() < 1e-9 && (x[1] - 2.0).abs() < 1e-9, "{x:?}");
        let noisy = solve(&a, &[1.0, 3.2, 4.8, 7.0], 0.0);
        assert!((noisy[1] - 1.96).abs() < 1e-9, "{noisy:?}");
    }

    #[test]
    fn an_unknown_without_effect_stays_unchanged() {
        let a = vec![vec![2.0, 0.0], vec![1.0, 0.0]];
        let x = solve(&a, &[4.0, 2.0], 1e-9);
        assert!((x[0] - 2.0).abs() < 1e-6 && x[1] == 0.0, "{x:?}");
        assert_eq!(solve(&a, &[4.0, 2.0], 0.0)[1], 0.0, "no division by zero");
    }

    #[test]
    fn a_matrix_times_its_inverse_is_the_unit() {
        let matrix = [[4.0, 1.0, 0.5], [1.0, 3.0, -1.0], [0.5, -1.0, 2.0]].map(Vec::from);
        let inverse = inverse(&matrix);
        for (i, row) in matrix.iter().enumerate() {
            for j in 0..3 {
                let sum: f64 = row.iter().zip(&inverse).map(|(a, b)| a * b[j]).sum();
                let unit = if i == j { 1.0 } else { 0.0 };
                assert!((sum - unit).abs() < 1e-12, "{inverse:?}");
            }
        }
    }

    #[test]
    fn dependent_rows_do_not_count() {
        assert_eq!(rank(&[vec![1.0, 2.0, 3.0], vec![2.0, 4.0, 6.0], vec![0.0, 1.0, 0.0]]), 2);
        assert_eq!(rank(&[vec![0.0, 1e-9], vec![0.0, 0.0]]), 0);
        assert_eq!(rank(&[vec![0.0, 1.0], vec![1.0, 0.0]]), 2);
    }
}
