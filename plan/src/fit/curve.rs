//! The time of one op shape as a function of its rows: a line with non-negative coefficients, two
//! such lines with a knee, or linear interpolation between measured points.

/// A measured time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Rows.
    pub m: usize,
    /// Positions that the rows attend to, summed; 0 for other ops than attention.
    pub attended: f64,
    /// Nanoseconds.
    pub time: f64,
}

/// Predicts the time from rows and attended positions.
#[derive(Clone, Debug, PartialEq)]
pub enum Curve {
    /// a + b·m + c·attended, with a, b, c ≥ 0.
    Linear([f64; 3]),
    /// One line up to a number of rows, another beyond: GEMV and GEMM kernels, or the memory-bound
    /// and the compute-bound side of a roofline.
    Knee {
        /// Maximum rows of the first line.
        last: usize,
        /// Coefficients of the first line.
        low: [f64; 3],
        /// Coefficients of the second line.
        high: [f64; 3],
    },
    /// Linear interpolation between (rows, ns) points, extrapolated beyond the first and last two.
    Between(Vec<(f64, f64)>),
}

/// Kinds of curves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Linear,
    Knee,
    Between,
}

impl Curve {
    /// Predicted nanoseconds.
    pub fn at(&self, m: usize, attended: f64) -> f64 {
        let line = |c: &[f64; 3]| c[0] + c[1] * m as f64 + c[2] * attended;
        match self {
            Curve::Linear(c) => line(c),
            Curve::Knee { last, low, high } => line(if m <= *last { low } else { high }),
            Curve::Between(points) => between(points, m as f64),
        }
    }

    /// The best fitting line; `None` without points.
    pub fn linear(points: &[Point]) -> Option<Curve> {
        fit(Form::Linear, points)
    }

    /// The curve that predicts left-out points best, and its relative error at each left-out point.
    /// A point that cannot be left out has no error.
    pub fn best(points: &[Point]) -> Option<(Curve, Vec<f64>)> {
        let attends = points.iter().any(|p| p.attended > 0.0);
        let forms = match attends {
            true => &[Form::Linear, Form::Knee][..],
            false => &[Form::Linear, Form::Knee, Form::Between],
        };
        let mut best: Option<(f64, Curve, Vec<f64>)> = None;
        for form in forms {
            let Some(curve) = fit(*form, points) else { continue };
            let errors = leave_one_out(*form, points);
            // A form that cannot be validated at every point is the last resort.
            let score = match errors.len() == points.len() {
                true => errors.iter().sum::<f64>() / errors.len() as f64,
                false => f64::INFINITY,
            };
            if best.as_ref().is_none_or(|(known, ..)| score < *known) {
                best = Some((score, curve, errors));
            }
        }
        best.map(|(_, curve, errors)| (curve, errors))
    }
}

fn leave_one_out(form: Form, points: &[Point]) -> Vec<f64> {
    let left_out = (0..points.len()).filter_map(|out| {
        let rest: Vec<Point> =
            points.iter().enumerate().filter(|(i, _)| *i != out).map(|(_, p)| *p).collect();
        let Point { m, attended, time } = points[out];
        let predicted = fit(form, &rest)?.at(m, attended);
        Some((predicted - time).abs() / time.max(1.0))
    });
    left_out.collect()
}

fn fit(form: Form, points: &[Point]) -> Option<Curve> {
    match form {
        Form::Linear => line(points).map(|(c, _)| Curve::Linear(c)),
        Form::Knee => knee(points),
        Form::Between => {
            let mut sorted: Vec<(f64, f64)> = points.iter().map(|p| (p.m as f64, p.time)).collect();
            sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
            sorted.dedup_by_key(|p| p.0);
            (sorted.len() >= 2).then_some(Curve::Between(sorted))
        }
    }
}

fn between(points: &[(f64, f64)], m: f64) -> f64 {
    let above = points.partition_point(|p| p.0 < m).clamp(1, points.len() - 1);
    let ((m0, t0), (m1, t1)) = (points[above - 1], points[above]);
    (t0 + (t1 - t0) * (m - m0) / (m1 - m0)).max(0.0)
}

/// Two lines, with the knee at the least total error.
fn knee(points: &[Point]) -> Option<Curve> {
    let mut sorted = points.to_vec();
    sorted.sort_by_key(|p| p.m);
    let mut best: Option<(f64, Curve)> = None;
    for split in 2..sorted.len().saturating_sub(1) {
        let last = sorted[split - 1].m;
        if sorted[split].m == last {
            continue;
        }
        let (a, b) = sorted.split_at(split);
        let (Some((low, e0)), Some((high, e1))) = (line(a), line(b)) else { continue };
        if best.as_ref().is_none_or(|(known, _)| e0 + e1 < *known) {
            best = Some((e0 + e1, Curve::Knee { last, low, high }));
        }
    }
    best.map(|(_, curve)| curve)
}

/// Non-negative least squares of relative errors: the best solution over all subsets of coefficients
/// that has no negative coefficient. Returns the coefficients and the sum of squared errors.
fn line(points: &[Point]) -> Option<([f64; 3], f64)> {
    let rows: Vec<[f64; 3]> =
        points.iter().map(|p| [1.0, p.m as f64, p.attended].map(|f| f / p.time.max(1.0))).collect();
    let mut best: Option<([f64; 3], f64)> = None;
    for subset in 1..8_usize {
        let used: Vec<usize> = (0..3).filter(|f| subset >> f & 1 == 1).collect();
        let Some(c) = solve(&rows, &used) else { continue };
        if c.iter().any(|c| *c < 0.0) {
            continue;
        }
        let error =
            |row: &[f64; 3]| (row.iter().zip(&c).map(|(r, c)| r * c).sum::<f64>() - 1.0).powi(2);
        let sum: f64 = rows.iter().map(error).sum();
        // Of fits that are equal up to rounding, the first has the fewest coefficients.
        if best.as_ref().is_none_or(|(_, known)| sum < known * (1.0 - 1e-9) - 1e-18) {
            best = Some((c, sum));
        }
    }
    best
}

/// Solves the normal equations of the used columns, with a right-hand side of 1.
fn solve(rows: &[[f64; 3]], used: &[usize]) -> Option<[f64; 3]> {
    let size = used.len();
    if rows.len() < size {
        return None;
    }
    // Columns are scaled to length 1, so that a small pivot means nearly dependent columns.
    let length: Vec<f64> =
        used.iter().map(|f| rows.iter().map(|r| r[*f] * r[*f]).sum::<f64>().sqrt()).collect();
    if length.contains(&0.0) {
        return None;
    }
    let mut matrix = [[0.0; 4]; 3];
    for row in rows {
        for i in 0..size {
            let a = row[used[i]] / length[i];
            for j in 0..size {
                matrix[i][j] += a * row[used[j]] / length[j];
            }
            matrix[i][3] += a;
        }
    }
    for i in 0..size {
        let pivot = (i..size).max_by(|a, b| matrix[*a][i].abs().total_cmp(&matrix[*b][i].abs()))?;
        matrix.swap(i, pivot);
        let head = matrix[i];
        if head[i].abs() < 1e-10 {
            return None;
        }
        for row in matrix.iter_mut().take(size).skip(i + 1) {
            let factor = row[i] / head[i];
            row.iter_mut().zip(head).for_each(|(value, above)| *value -= factor * above);
        }
    }
    let mut solved = [0.0; 3];
    for i in (0..size).rev() {
        let known: f64 = (i + 1..size).map(|j| matrix[i][j] * solved[j]).sum();
        solved[i] = (matrix[i][3] - known) / matrix[i][i];
    }
    let mut coefficients = [0.0; 3];
    for (i, f) in used.iter().enumerate() {
        coefficients[*f] = solved[i] / length[i];
    }
    Some(coefficients)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRID: [usize; 9] = [1, 2, 4, 8, 16, 32, 64, 128, 256];

    fn points(law: impl Fn(usize) -> f64) -> Vec<Point> {
        GRID.map(|m| Point { m, attended: 0.0, time: law(m) }).to_vec()
    }

    fn median(mut errors: Vec<f64>) -> f64 {
        errors.sort_by(f64::total_cmp);
        errors[errors.len() / 2]
    }

    #[test]
    fn a_line_is_recovered() {
        let points = points(|m| 5000.0 + 300.0 * m as f64);
        let (curve, errors) = Curve::best(&points).expect("a curve");
        assert!((curve.at(100, 0.0) - 35_000.0).abs() < 1.0, "{curve:?}");
        assert!(errors.iter().all(|e| *e < 1e-6), "{errors:?}");
    }

    #[test]
    fn a_knee_is_recovered() {
        // Memory-bound up to 16 rows, compute-bound beyond.
        let law = |m: usize| (80_000.0 + m as f64).max(4000.0 * m as f64 + 20_000.0);
        let (curve, errors) = Curve::best(&points(law)).expect("a curve");
        for m in [3, 12, 48, 100, 200] {
            let error = (curve.at(m, 0.0) / law(m) - 1.0).abs();
            assert!(error < 0.1, "{m}: {error} {curve:?}");
        }
        assert!(median(errors) < 0.05);
    }

    #[test]
    fn attention_is_linear_in_attended_positions() {
        let law = |m: f64, attended: f64| 2000.0 + 10.0 * m + 0.5 * attended;
        let grid = [(1, 0), (1, 256), (8, 64), (64, 0), (64, 512), (256, 0), (256, 256)];
        let points = grid.map(|(m, c)| {
            let attended = crate::shape::attended(m, c, None);
            Point { m, attended, time: law(m as f64, attended) }
        });
        let (curve, _) = Curve::best(&points).expect("a curve");
        let attended = crate::shape::attended(32, 300, None);
        assert!((curve.at(32, attended) / law(32.0, attended) - 1.0).abs() < 1e-6, "{curve:?}");
    }

    #[test]
    fn the_error_of_left_out_points_shows_the_noise() {
        // ±20 % around a line: the true error is neither near 0 nor far above 20 %.
        let noisy = |m: usize| {
            let sign = if m.ilog2().is_multiple_of(2) { 1.2 } else { 0.8 };
            (1000.0 * m as f64 + 50_000.0) * sign
        };
        let (_, errors) = Curve::best(&points(noisy)).expect("a curve");
        let median = median(errors);
        assert!((0.12..0.45).contains(&median), "{median}");
    }

    #[test]
    fn coefficients_are_never_negative() {
        // Times that fall with the rows can only be noise.
        let falling = [(1, 900.0), (2, 800.0), (4, 700.0), (8, 500.0)];
        let falling = falling.map(|(m, time)| Point { m, attended: 0.0, time });
        let (c, _) = line(&falling).expect("a line");
        assert!(c.iter().all(|c| *c >= 0.0), "{c:?}");
    }

    #[test]
    fn a_single_point_gives_a_line_and_no_error() {
        let one = [Point { m: 4, attended: 0.0, time: 100.0 }];
        let (curve, errors) = Curve::best(&one).expect("a curve");
        assert!((curve.at(4, 0.0) - 100.0).abs() < 1e-9);
        assert!(errors.is_empty());
    }
}
