//! Grouped bar plots.

use std::fmt::Write;

use super::axis::{Axis, base, vertical};
use super::drawing::{
    BOTTOM, COLOURS, HEIGHT, LEFT, RIGHT, TOP, WIDTH, alone, escaped, open, short, text,
};

/// A bar plot.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bars {
    /// Title.
    pub title: String,
    /// Name of the horizontal axis.
    pub x: String,
    /// Name of the vertical axis, with its unit.
    pub y: String,
    /// Name of each bar of a group; colours repeat after eight.
    pub names: Vec<String>,
    /// Groups, from left to right.
    pub groups: Vec<BarGroup>,
}

/// A group of bars.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BarGroup {
    /// Its name.
    pub name: String,
    /// Value of each bar, if there is one.
    pub values: Vec<Option<f64>>,
    /// Published value of each bar, if there is one; drawn as a line across the bar.
    pub published: Vec<Option<f64>>,
}

/// Maximum width of a bar.
const BAR_MAX: f64 = 46.0;

impl Bars {
    /// The plot, for use on a [`Page`](super::Page).
    pub fn svg(&self) -> String {
        let values = self.groups.iter().flat_map(|g| g.values.iter().chain(&g.published));
        let y = Axis::of(values.flatten().copied(), true);
        let mut svg = open(&self.title);
        vertical(&mut svg, &y, &self.y);
        let room = (WIDTH - LEFT - RIGHT) / self.groups.len().max(1) as f64;
        let width = (room * 0.8 / self.names.len().max(1) as f64).min(BAR_MAX);
        for (at, group) in self.groups.iter().enumerate() {
            let middle = LEFT + (at as f64 + 0.5) * room;
            let left = middle - width * self.names.len() as f64 / 2.0;
            for (bar, name) in self.names.iter().enumerate() {
                let bar = Bar {
                    label: format!("{}, {}", escaped(&group.name), escaped(name)),
                    colour: bar % COLOURS,
                    value: group.values.get(bar).copied().flatten().filter(|v| v.is_finite()),
                    published: group.published.get(bar).copied().flatten(),
                    x: left + bar as f64 * width,
                    width,
                };
                bar.draw(&mut svg, &y);
            }
            text(&mut svg, (middle, HEIGHT - BOTTOM + 19.0), "tick middle", &group.name);
        }
        base(&mut svg, &self.x);
        self.legend(&mut svg);
        svg.push_str("</svg>\n");
        svg
    }

    /// The plot as a file of its own.
    pub fn svg_file(&self) -> String {
        alone(&self.svg(), &self.title, "")
    }

    fn legend(&self, svg: &mut String) {
        let x = WIDTH - RIGHT + 10.0;
        for (at, name) in self.names.iter().enumerate() {
            let (y, colour) = (TOP + 8.0 + at as f64 * 20.0, at % COLOURS);
            let _ = writeln!(
                svg,
                "<rect class=\"bar ink{colour}\" x=\"{x}\" y=\"{:.1}\" width=\"11\" height=\"11\"/>",
                y - 10.0
            );
            text(svg, (x + 17.0, y), "label", name);
        }
        if self.groups.iter().any(|g| g.published.iter().any(Option::is_some)) {
            let y = TOP + 8.0 + self.names.len() as f64 * 20.0;
            let _ = writeln!(svg, "<path class=\"mark\" d=\"M{:.1} {:.1}h13\"/>", x - 1.0, y - 4.0);
            text(svg, (x + 17.0, y), "label", "published");
        }
    }
}

/// A bar of a group.
struct Bar {
    label: String,
    /// Number of its colour.
    colour: usize,
    value: Option<f64>,
    published: Option<f64>,
    /// Left edge.
    x: f64,
    width: f64,
}

impl Bar {
    fn draw(&self, svg: &mut String, y: &Axis) {
        let Bar { label, colour, value, published, x, width } = self;
        if let Some(value) = *value {
            let (top, floor) = (y.y(value.max(0.0)), y.y(value.min(0.0)));
            let published_text =
                published.map_or(String::new(), |p| format!(", published {}", short(p)));
            let _ = writeln!(
                svg,
                "<rect class=\"bar ink{colour}\" x=\"{:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{:.1}\" rx=\"2\"><title>{label}: {}{published_text}</title></rect>",
                x + 1.5,
                width - 3.0,
                (floor - top).max(0.5),
                short(value)
            );
            text(svg, (x + width / 2.0, top - 5.0), "value middle", &short(value));
        }
        if let Some(value) = *published {
            let _ = writeln!(
                svg,
                "<path class=\"mark\" d=\"M{:.1} {:.1}h{width:.1}\"><title>{label}: published {}</title></path>",
                x,
                y.y(value),
                short(value)
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_values_have_no_bar() {
        let group = |values, published| BarGroup { name: "g".into(), values, published };
        let bars = Bars {
            names: vec!["a".into(), "b".into()],
            groups: vec![
                group(vec![Some(1.0), None], vec![]),
                group(vec![Some(f64::NAN), Some(2.0)], vec![None, Some(2.5)]),
            ],
            ..Bars::default()
        };
        let svg = bars.svg();
        assert_eq!(svg.matches("<title>g, ").count(), 3, "{svg}");
        assert!(svg.contains("g, b: 2, published 2.5"), "{svg}");
    }
}
