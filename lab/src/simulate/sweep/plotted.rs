//! The plot of a sweep.

use lapwing_traces::text::counted;

use super::{Axis, Figure, SEED, Sweep};
use crate::simulate::labels::figure_label;
use crate::simulate::plot::{Lines, Series};
use crate::simulate::repeated::interval;

/// The results of a line's runs: for each x, the values of all seeds.
type Results = Vec<(f64, Vec<f64>)>;

impl Sweep {
    /// Plots a result over the first axis that consists of numbers, with one line for each combination
    /// of the others. Runs that differ in their seeds only are one point: their mean, with its 95 %
    /// confidence interval (Student's t). `None` if no axis consists of numbers.
    pub fn plot(&self, figure: Figure) -> Option<Lines> {
        let numbers = |axis: &Axis| axis.numbers().is_some();
        let find = |with: &dyn Fn(&Axis) -> bool| self.axes.iter().position(with);
        let across = find(&|axis| numbers(axis) && axis.key != SEED).or_else(|| find(&numbers))?;
        let xs = self.axes[across].numbers()?;
        let x_of = |value: &String| self.axes[across].values.iter().position(|v| v == value);
        let names_a_line = |at: usize| at != across && self.axes[at].key != SEED;
        let mut lines: Vec<(String, Results)> = Vec::new();
        for point in &self.points {
            let others = point.values.iter().enumerate().filter(|(at, _)| names_a_line(*at));
            let names: Vec<&str> = others.map(|(_, value)| value.as_str()).collect();
            let name =
                if names.is_empty() { figure_label(figure.0).to_owned() } else { names.join(", ") };
            let x = x_of(&point.values[across]).map_or(f64::NAN, |at| xs[at]);
            let y = point.outcome.as_ref().ok().and_then(figure.1).unwrap_or(f64::NAN);
            let at = lines.iter().position(|line| line.0 == name).unwrap_or_else(|| {
                lines.push((name, Vec::new()));
                lines.len() - 1
            });
            let results = &mut lines[at].1;
            match results.iter_mut().find(|(known, _)| *known == x) {
                Some((_, values)) => values.push(y),
                None => results.push((x, vec![y])),
            }
        }
        let series = lines.into_iter().map(|(name, results)| series(name, &results)).collect();
        let (x, y) = (self.labels[across].clone(), figure_label(figure.0).to_owned());
        let caption = self.caption(across);
        Some(Lines { title: format!("{y} over {x}"), x, y, caption, series })
    }
}

impl Sweep {
    /// The lines' names, the settings that are the same everywhere, and what a point is.
    fn caption(&self, across: usize) -> String {
        let lines = self.axes.iter().enumerate();
        let lines = lines.filter(|(at, axis)| *at != across && axis.key != SEED);
        let lines: Vec<&str> = lines.map(|(_, axis)| &*axis.key).collect();
        let seeds = self.axes.iter().find(|axis| axis.key == SEED && self.axes[across].key != SEED);
        let settings = self
            .settings
            .iter()
            .filter(|(key, value)| !value.is_empty() && (seeds.is_none() || key != SEED));
        let settings: Vec<String> = settings.map(|(key, value)| format!("{key} {value}")).collect();
        let mut caption = match lines[..] {
            [] => String::new(),
            _ => format!("Lines: {}. ", lines.join(", ")),
        };
        caption += &format!("Simulated; {}.", settings.join(", "));
        if let Some(seeds) = seeds {
            let count = seeds.values.len();
            caption +=
                &format!(" Means of {} with 95 % intervals (Student's t).", counted(count, "run"));
        }
        caption
    }
}

/// The line through the means, with the intervals of those that have several finite values.
fn series(name: String, results: &Results) -> Series {
    let mut series = Series::new(name, Vec::new());
    for (x, values) in results {
        if let [value] = values[..] {
            series.points.push((*x, value));
            continue;
        }
        let (mean, half) = interval(values);
        series.points.push((*x, mean));
        if half.is_finite() {
            series.intervals.push((*x, mean - half, mean + half));
        }
    }
    series
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::{FIGURES, Repeated, Runs, Scenario};

    #[test]
    fn runs_with_several_seeds_are_one_point_with_the_interval_of_repeated_runs() {
        let mut base = Scenario::new("sd8gen3").expect("a preset");
        (base.prompt, base.decode, base.seed) = (64, 0, 7);
        base.set("noise.spread", "0.1").expect("a number");
        let axes = ["prompt=64,128", "strategy=pipe,gpu-only"].map(Axis::parse);
        let axes = axes.into_iter().chain([Axis::seeds(7, 5)]);
        let axes = axes.collect::<Result<_, _>>().expect("axes");
        let sweep = Sweep::run(&base, axes, &mut Runs::default()).expect("a sweep");
        let figure = *FIGURES.iter().find(|figure| figure.0 == "prefill_ms").expect("a result");
        let lines = sweep.plot(figure).expect("a plot");
        let names: Vec<&str> = lines.series.iter().map(|s| s.name.as_str()).collect();
        assert_eq!(names, ["pipe", "gpu-only"]);
        base.set("strategy", "gpu-only").expect("a strategy");
        let repeated = Repeated::run(&base, 5).expect("runs");
        let mean = repeated.mean("prefill_ms").expect("a time");
        assert_eq!(lines.series[1].points[0], (64.0, mean.mean));
        assert_eq!(lines.series[1].intervals[0], (64.0, mean.low, mean.high));
        assert!(mean.low < mean.high && lines.series[1].intervals.len() == 2);
        assert!(Axis::seeds(0, 1).is_err());
        for says in ["Lines: strategy.", "soc sd8gen3", "noise.spread 0.1", "Means of 5 runs"] {
            assert!(lines.caption.contains(says), "{says}: {}", lines.caption);
        }
        let csv = sweep.csv();
        let rows: Vec<&str> = csv.lines().collect();
        assert!(rows[0].ends_with(",stepped-preparation,noise.spread"), "{}", rows[0]);
        assert!(rows[1..].iter().all(|row| row.ends_with(",off,0.1")), "{csv}");
    }
}
