//! Line plots, for example with one line for each strategy.

use std::fmt::Write;

use super::axis::{Axis, horizontal, vertical};
use super::drawing::{
    BOTTOM, COLOURS, HEIGHT, RIGHT, TOP, WIDTH, alone, escaped, open, short, spread, text,
};

/// A line plot.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lines {
    /// Title.
    pub title: String,
    /// What readers of a file of its own have to know, below the plot: settings, the meaning of intervals.
    pub caption: String,
    /// Name of the horizontal axis, with its unit.
    pub x: String,
    /// Name of the vertical axis, with its unit.
    pub y: String,
    /// The lines, the most important first; colours repeat after eight.
    pub series: Vec<Series>,
}

/// A line, and published values next to it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// Its name.
    pub name: String,
    /// Points in drawing order. NaN and infinities interrupt the line.
    pub points: Vec<(f64, f64)>,
    /// Published values, drawn as rings.
    pub published: Vec<(f64, f64)>,
    /// Intervals around points, drawn as bars: x, lower end, upper end.
    pub intervals: Vec<(f64, f64, f64)>,
}

impl Series {
    /// A line without published values and intervals.
    pub fn new(name: impl Into<String>, points: Vec<(f64, f64)>) -> Series {
        Series { name: name.into(), points, ..Series::default() }
    }
}

/// Maximum number of points drawn with dots.
const DOTS_MAX: usize = 24;

impl Lines {
    /// The plot, for use on a [`Page`](super::Page).
    pub fn svg(&self) -> String {
        let all = || self.series.iter().flat_map(|s| s.points.iter().chain(&s.published));
        let x = Axis::of(all().map(|p| p.0), false);
        let intervals = self.series.iter().flat_map(|s| &s.intervals);
        let ends = intervals.flat_map(|(_, low, high)| [*low, *high]);
        let y = Axis::of(all().map(|p| p.1).chain(ends), true);
        let mut svg = open(&self.title);
        vertical(&mut svg, &y, &self.y);
        horizontal(&mut svg, &x, &self.x);
        // The first lines are drawn last, on top of the others.
        for (at, series) in self.series.iter().enumerate().rev() {
            line(&mut svg, series, at % COLOURS, &x, &y);
        }
        self.names(&mut svg, &y);
        svg.push_str("</svg>\n");
        svg
    }

    /// The plot as a file of its own, with title and caption.
    pub fn svg_file(&self) -> String {
        alone(&self.svg(), &self.title, &self.caption)
    }

    /// Each line's name, at its end.
    fn names(&self, svg: &mut String, y: &Axis) {
        let last = |series: &Series| {
            let points = series.points.iter().chain(&series.published);
            let finite = points.filter(|point| point.1.is_finite());
            finite.max_by(|a, b| a.0.total_cmp(&b.0)).map_or(HEIGHT / 2.0, |point| y.y(point.1))
        };
        let wanted: Vec<f64> = self.series.iter().map(|series| last(series) + 4.0).collect();
        let placed = spread(&wanted, 16.0, TOP + 6.0, HEIGHT - BOTTOM);
        for ((at, series), y) in self.series.iter().enumerate().zip(placed) {
            let class = format!("label ink{}", at % COLOURS);
            text(svg, (WIDTH - RIGHT + 10.0, y), &class, &series.name);
        }
    }
}

fn line(svg: &mut String, series: &Series, colour: usize, x: &Axis, y: &Axis) {
    let mut path = String::new();
    let mut pen_down = false;
    for point in &series.points {
        if !(point.0.is_finite() && point.1.is_finite()) {
            pen_down = false;
            continue;
        }
        let command = if pen_down { 'L' } else { 'M' };
        let _ = write!(path, "{command}{:.1} {:.1}", x.x(point.0), y.y(point.1));
        pen_down = true;
    }
    let _ = writeln!(svg, "<path class=\"line hue{colour}\" d=\"{path}\"/>");
    let dot = if series.points.len() > DOTS_MAX { "quiet" } else { "dot" };
    let name = escaped(&series.name);
    for (px, py) in series.points.iter().filter(|p| p.0.is_finite() && p.1.is_finite()) {
        let _ = writeln!(
            svg,
            "<circle class=\"{dot} ink{colour}\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\"><title>{name}, {}: {}</title></circle>",
            x.x(*px),
            y.y(*py),
            short(*px),
            short(*py)
        );
    }
    for (px, low, high) in &series.intervals {
        let _ = writeln!(
            svg,
            "<path class=\"interval hue{colour}\" d=\"M{0:.1} {1:.1}V{2:.1}M{3:.1} {1:.1}h8M{3:.1} {2:.1}h8\"><title>{name}, {4}: {5} to {6}</title></path>",
            x.x(*px),
            y.y(*low),
            y.y(*high),
            x.x(*px) - 4.0,
            short(*px),
            short(*low),
            short(*high)
        );
    }
    for (px, py) in &series.published {
        let _ = writeln!(
            svg,
            "<circle class=\"ring hue{colour}\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"6.5\"><title>{name}, {}: published {}</title></circle>",
            x.x(*px),
            y.y(*py),
            short(*px),
            short(*py)
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_values_interrupt_the_line() {
        let points = vec![(0.0, 1.0), (1.0, f64::NAN), (2.0, 3.0), (3.0, 4.0)];
        let lines = Lines {
            series: vec![Series { published: vec![(2.0, 3.1)], ..Series::new("a<b", points) }],
            ..Lines::default()
        };
        let svg = lines.svg();
        let path = svg.lines().find(|l| l.contains("class=\"line")).expect("a line");
        assert_eq!((path.matches('M').count(), path.matches('L').count()), (2, 1), "{path}");
        assert_eq!(svg.matches("class=\"ring").count(), 1);
        assert!(svg.contains("a&lt;b") && !svg.contains("NaN"), "{svg}");
        let lines = Lines {
            title: "speed <1>".to_owned(),
            caption: "sd8gen3, ".repeat(20) + "end",
            ..lines
        };
        let file = lines.svg_file();
        assert!(file.contains("<style>") && file.contains(">speed &lt;1&gt;</text>"), "{file}");
        assert_eq!(file.matches("sd8gen3").count(), 20);
        assert_eq!(file.matches("<text class=\"name\" x=\"8.0\" y=\"4").count(), 2, "{file}");
    }

    #[test]
    fn intervals_lie_within_the_plot() {
        let intervals = vec![(0.0, 0.5, 1.5), (1.0, 1.0, 900.0)];
        let points = vec![(0.0, 1.0), (1.0, 2.0)];
        let lines = Lines {
            series: vec![Series { intervals, ..Series::new("a", points) }],
            ..Lines::default()
        };
        let svg = lines.svg();
        let bars: Vec<&str> = svg.lines().filter(|l| l.contains("class=\"interval")).collect();
        assert_eq!(bars.len(), 2);
        for bar in bars {
            let end = bar.split_once('V').and_then(|(_, rest)| rest.split_once('M'));
            let end: f64 = end.and_then(|(end, _)| end.parse().ok()).expect("the upper end");
            assert!((TOP..=HEIGHT - BOTTOM).contains(&end), "{bar}");
        }
    }
}
