//! The plot of a sweep.

use lapwing_traces::text::counted;

use super::groups::{Group, GroupMean};
use super::{Axis, Results, SEED, Sweep};
use crate::simulate::labels::figure_label;
use crate::simulate::plot::{BarGroup, Bars, Lines, Series};
use crate::simulate::repeated::interval;

/// The results of a line's runs: for each x, the values of all seeds.
type Line = Vec<(f64, Vec<f64>)>;

impl<R: Results> Sweep<R> {
    /// Plots a result over the first axis that consists of numbers, with one line for each combination
    /// of the others. Runs that differ in their seeds only are one point: their mean, with its 95 %
    /// confidence interval (Student's t). `None` if no axis consists of numbers.
    pub fn plot(&self, figure: &str) -> Option<Lines> {
        let numbers = |axis: &Axis| axis.numbers().is_some();
        let find = |with: &dyn Fn(&Axis) -> bool| self.axes.iter().position(with);
        let across = find(&|axis| numbers(axis) && axis.key != SEED).or_else(|| find(&numbers))?;
        let xs = self.axes[across].numbers()?;
        let x_of = |value: &String| self.axes[across].values.iter().position(|v| v == value);
        let tells = |at: usize| at == across || self.axes[at].key != SEED;
        let place = (0..across).filter(|at| tells(*at)).count();
        let mut lines: Vec<(String, Line)> = Vec::new();
        for Group { mut values, results } in self.groups(figure, tells) {
            let x = x_of(&values.remove(place)).map_or(f64::NAN, |at| xs[at]);
            let name = match values.is_empty() {
                true => figure_label(figure).to_owned(),
                false => values.join(", "),
            };
            match lines.iter_mut().find(|line| line.0 == name) {
                Some(line) => line.1.push((x, results)),
                None => lines.push((name, vec![(x, results)])),
            }
        }
        let series = lines.into_iter().map(|(name, line)| series(name, &line)).collect();
        let (x, y) = (self.labels[across].clone(), figure_label(figure).to_owned());
        let caption = self.caption(across);
        Some(Lines { title: format!("{y} over {x}"), x, y, caption, series })
    }

    /// A result as bars: a group for each value of the first axis, with a bar for each combination of the others. Runs that
    /// differ in their seeds only are one bar: their mean. `None` without an axis.
    pub fn bars(&self, figure: &str) -> Option<Bars> {
        let across = self.axes.iter().position(|axis| axis.key != SEED)?;
        let y = figure_label(figure).to_owned();
        let (mut names, mut groups): (Vec<String>, Vec<BarGroup>) = (Vec::new(), Vec::new());
        for GroupMean { mut values, mean, .. } in self.means(figure) {
            let group = values.remove(0);
            let name = if values.is_empty() { y.clone() } else { values.join(", ") };
            let bar = names.iter().position(|known| *known == name).unwrap_or_else(|| {
                names.push(name);
                names.len() - 1
            });
            if groups.last().is_none_or(|last| last.name != group) {
                groups.push(BarGroup { name: group, ..BarGroup::default() });
            }
            let values = groups.last_mut().map(|group| &mut group.values);
            values.into_iter().for_each(|values| {
                values.resize(values.len().max(bar + 1), None);
                values[bar] = Some(mean).filter(|mean| mean.is_finite());
            });
        }
        let x = self.labels[across].clone();
        Some(Bars { title: format!("{y} by {x}"), x, y, names, groups })
    }
}

impl<R> Sweep<R> {
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
fn series(name: String, results: &Line) -> Series {
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
    use crate::simulate::{Repeated, Runs, Scenario};

    #[test]
    fn runs_with_several_seeds_are_one_point_with_the_interval_of_repeated_runs() {
        let mut base = Scenario::new("sd8gen3").expect("a preset");
        (base.prompt, base.decode, base.seed) = (64, 0, 7);
        base.set("noise.spread", "0.1").expect("a number");
        let axes = ["prompt=64,128", "strategy=pipe,gpu-only"].map(Axis::parse);
        let axes = axes.into_iter().chain([Axis::seeds(7, 5)]);
        let axes = axes.collect::<Result<_, _>>().expect("axes");
        let sweep = Sweep::run(&base, axes, &mut Runs::default()).expect("a sweep");
        let figure = "prefill_ms";
        let lines = sweep.plot(figure).expect("a plot");
        let bars = sweep.bars(figure).expect("bars");
        assert_eq!((bars.names.len(), bars.groups.len()), (2, 2));
        assert_eq!(bars.groups[0].values[1], Some(lines.series[1].points[0].1));
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
