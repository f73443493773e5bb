//! Axes with round, evenly spaced ticks.

use std::fmt::Write;

use super::drawing::{BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, short, text};

/// Maps a range of values to a range of the plot.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Axis {
    from: f64,
    to: f64,
    pub(super) ticks: Vec<f64>,
}

/// Maximum number of ticks.
const TICKS_MAX: f64 = 8.0;

impl Axis {
    /// An axis for all values, including zero if `zero` is set. NaN and infinities are ignored.
    pub(super) fn of(values: impl Iterator<Item = f64>, zero: bool) -> Axis {
        let finite = values.filter(|value| value.is_finite());
        let start = if zero { (0.0, 0.0) } else { (f64::INFINITY, f64::NEG_INFINITY) };
        let (mut from, mut to) = finite.fold(start, |(a, b), v| (a.min(v), b.max(v)));
        if !from.is_finite() {
            (from, to) = (0.0, 1.0);
        }
        if to - from <= 0.0 {
            to = from + from.abs().max(1.0);
        }
        let step = round_step((to - from) / TICKS_MAX);
        if zero {
            to = (to / step).ceil() * step;
            from = (from / step).floor() * step;
        }
        let first = (from / step).ceil() as i64;
        let last = (to / step).floor() as i64;
        let ticks = (first..=last).map(|tick| tick as f64 * step).collect();
        Axis { from, to, ticks }
    }

    /// Position of a value as a fraction of the axis.
    fn share(&self, value: f64) -> f64 {
        (value - self.from) / (self.to - self.from)
    }

    /// Horizontal position.
    pub(super) fn x(&self, value: f64) -> f64 {
        LEFT + self.share(value) * (WIDTH - LEFT - RIGHT)
    }

    /// Vertical position.
    pub(super) fn y(&self, value: f64) -> f64 {
        HEIGHT - BOTTOM - self.share(value) * (HEIGHT - BOTTOM - TOP)
    }
}

/// The smallest of 1, 2, 5, 10, … that is at least `least`.
fn round_step(least: f64) -> f64 {
    let power = 10f64.powf(least.log10().floor());
    let times = [1.0, 2.0, 5.0, 10.0].into_iter().find(|t| t * power >= least * 0.999_999);
    times.unwrap_or(10.0) * power
}

/// Grid lines and numbers of the vertical axis, and its name above.
pub(super) fn vertical(svg: &mut String, axis: &Axis, name: &str) {
    for tick in &axis.ticks {
        let y = axis.y(*tick);
        let _ = writeln!(svg, "<path class=\"grid\" d=\"M{LEFT} {y:.1}H{:.1}\"/>", WIDTH - RIGHT);
        text(svg, (LEFT - 8.0, y + 4.0), "tick end", &short(*tick));
    }
    text(svg, (8.0, 16.0), "name", name);
}

/// Numbers of the horizontal axis, and its name below.
pub(super) fn horizontal(svg: &mut String, axis: &Axis, name: &str) {
    let y = HEIGHT - BOTTOM;
    for tick in &axis.ticks {
        let x = axis.x(*tick);
        let _ = writeln!(svg, "<path class=\"axis\" d=\"M{x:.1} {y}v5\"/>");
        text(svg, (x, y + 19.0), "tick middle", &short(*tick));
    }
    base(svg, name);
}

/// The base line, and the name below it.
pub(super) fn base(svg: &mut String, name: &str) {
    let y = HEIGHT - BOTTOM;
    let _ = writeln!(svg, "<path class=\"axis\" d=\"M{LEFT} {y}H{:.1}\"/>", WIDTH - RIGHT);
    text(svg, ((LEFT + WIDTH - RIGHT) / 2.0, HEIGHT - 8.0), "name middle", name);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_values_fit_the_axis_and_ticks_are_round() {
        for values in
            [vec![3.0, 47.0, 251.0], vec![0.001, 0.0042], vec![5.0], vec![], vec![f64::NAN]]
        {
            let axis = Axis::of(values.iter().copied(), true);
            assert!((2..=10).contains(&axis.ticks.len()), "{axis:?}");
            for value in values.iter().filter(|v| v.is_finite()) {
                assert!((0.0..=1.0).contains(&axis.share(*value)), "{value} {axis:?}");
            }
        }
        assert_eq!(Axis::of([0.0, 250.0].into_iter(), true).ticks[1], 50.0);
    }
}
