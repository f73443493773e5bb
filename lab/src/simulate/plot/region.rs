//! A plot of values over two axes: a coloured cell for each, and the line around those above a given value.

use std::fmt::Write;

use super::axis::{Axis, horizontal, vertical};
use super::drawing::{RIGHT, TOP, WIDTH, alone, escaped, open, short, text};

/// A region plot.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Region {
    /// Title.
    pub title: String,
    /// What readers of a file of its own have to know, below the plot.
    pub caption: String,
    /// Name of the horizontal axis.
    pub x: String,
    /// Name of the vertical axis.
    pub y: String,
    /// Coordinates of the columns of cells, ascending.
    pub columns: Vec<f64>,
    /// Coordinates of the rows of cells, ascending.
    pub rows: Vec<f64>,
    /// Values by row and column. NaN and infinities have no cell.
    pub values: Vec<Vec<f64>>,
    /// Cells above this value have one colour, those below another, stronger with the distance.
    pub border: f64,
    /// Values that are no farther from the border count as equal to it: their cells have no colour. The line goes
    /// around the values above.
    pub tie: f64,
    /// What values above, and below the border mean.
    pub sides: [String; 2],
    /// Names and coordinates of single points.
    pub marks: Vec<(String, f64, f64)>,
}

/// Opacity of a cell with a value next to the border, and of the one farthest from it.
const OPACITY: (f64, f64) = (0.08, 0.85);

/// The edges of the cells, and the axes that they lie on.
struct Grid {
    columns: Vec<f64>,
    rows: Vec<f64>,
    x: Axis,
    y: Axis,
}

impl Grid {
    fn of(region: &Region) -> Grid {
        let (columns, rows) = (edges(&region.columns), edges(&region.rows));
        let x = Axis::of(columns.iter().copied(), false);
        let y = Axis::of(rows.iter().copied(), false);
        Grid { columns, rows, x, y }
    }
}

impl Region {
    /// The plot, for use on a [`Page`](super::Page).
    pub fn svg(&self) -> String {
        let grid = Grid::of(self);
        let mut svg = open(&self.title);
        self.cells(&mut svg, &grid);
        vertical(&mut svg, &grid.y, &self.y);
        horizontal(&mut svg, &grid.x, &self.x);
        self.line(&mut svg, &grid);
        self.numbers(&mut svg, &grid);
        for (name, at_x, at_y) in &self.marks {
            let (at_x, at_y) = (grid.x.x(*at_x), grid.y.y(*at_y));
            let _ = writeln!(
                svg,
                "<circle class=\"mark\" cx=\"{at_x:.1}\" cy=\"{at_y:.1}\" r=\"6\"><title>{}</title></circle>",
                escaped(name)
            );
            text(&mut svg, (at_x - 10.0, at_y + 4.0), "label end halo", name);
        }
        self.legend(&mut svg);
        svg.push_str("</svg>\n");
        svg
    }

    /// The plot as a file of its own, with title and caption.
    pub fn svg_file(&self) -> String {
        alone(&self.svg(), &self.title, &self.caption)
    }

    fn cells(&self, svg: &mut String, grid: &Grid) {
        let Grid { columns, rows, x, y } = grid;
        let all = self.values.iter().flatten().filter(|value| value.is_finite());
        let farthest = all.map(|value| (value - self.border).abs()).fold(0.0, f64::max);
        for (values, row) in self.values.iter().zip(rows.windows(2)) {
            for (value, column) in values.iter().zip(columns.windows(2)) {
                if !value.is_finite() {
                    continue;
                }
                let distance = (value - self.border).abs();
                let share = distance / farthest.max(f64::MIN_POSITIVE);
                let opacity = OPACITY.0 + share * (OPACITY.1 - OPACITY.0);
                let (opacity, colour) = match distance <= self.tie {
                    true => (0.0, 0),
                    false => (opacity, if *value > self.border { 2 } else { 1 }),
                };
                let (left, top) = (x.x(column[0]), y.y(row[1]));
                let (width, height) = (x.x(column[1]) - left, y.y(row[0]) - top);
                let _ = writeln!(
                    svg,
                    "<rect class=\"cell ink{colour}\" x=\"{left:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" \
                     height=\"{height:.1}\" fill-opacity=\"{opacity:.2}\"/>"
                );
            }
        }
    }

    fn line(&self, svg: &mut String, Grid { x, y, .. }: &Grid) {
        let mut path = String::new();
        for [from, to] in self.segments() {
            let (from, to) = ((x.x(from.0), y.y(from.1)), (x.x(to.0), y.y(to.1)));
            let _ = write!(path, "M{:.1} {:.1}L{:.1} {:.1}", from.0, from.1, to.0, to.1);
        }
        let _ = writeln!(svg, "<path class=\"mark\" stroke-linecap=\"round\" d=\"{path}\"/>");
    }

    fn numbers(&self, svg: &mut String, Grid { x, y, .. }: &Grid) {
        for (values, row) in self.values.iter().zip(&self.rows) {
            for (value, column) in values.iter().zip(&self.columns) {
                if value.is_finite() {
                    let at = (x.x(*column), y.y(*row) + 4.0);
                    text(svg, at, "value middle", &format!("{value:.2}"));
                }
            }
        }
    }

    fn legend(&self, svg: &mut String) {
        let x = WIDTH - RIGHT + 10.0;
        for (at, (name, colour)) in self.sides.iter().zip([2, 1]).enumerate() {
            let y = TOP + 8.0 + at as f64 * 20.0;
            let _ = writeln!(
                svg,
                "<rect class=\"bar ink{colour}\" x=\"{x}\" y=\"{:.1}\" width=\"11\" height=\"11\"/>",
                y - 10.0
            );
            text(svg, (x + 17.0, y), "label", name);
        }
        let y = TOP + 48.0;
        let _ = writeln!(svg, "<path class=\"mark\" d=\"M{x} {:.1}h12\"/>", y - 4.0);
        let line = format!("{} \u{b1} {}", short(self.border), short(self.tie));
        text(svg, (x + 17.0, y), "label", &format!("equal: {line}"));
    }

    /// Line segments between the middles of cells, around the values above the border: marching squares.
    fn segments(&self) -> Vec<[(f64, f64); 2]> {
        let mut segments = Vec::new();
        for (row, values) in self.values.windows(2).enumerate() {
            for column in 0..self.columns.len().saturating_sub(1) {
                let corners =
                    [(row, column), (row, column + 1), (row + 1, column + 1), (row + 1, column)];
                let corner = |at: usize| {
                    let (row_of, column) = corners[at % 4];
                    let value = values_at(values, row_of - row, column);
                    (self.columns[column], self.rows[row_of], value - self.border - self.tie)
                };
                let mut crossings: Vec<(f64, f64)> =
                    (0..4).filter_map(|at| crossing(corner(at), corner(at + 1))).collect();
                // The line goes around the two corners that are not on the side of the middle.
                let middle = (0..4).map(|at| corner(at).2).sum::<f64>();
                if crossings.len() == 4 && (corner(0).2 >= 0.0) != (middle >= 0.0) {
                    crossings.rotate_left(1);
                }
                segments.extend(crossings.chunks_exact(2).map(|two| [two[0], two[1]]));
            }
        }
        segments
    }
}

fn values_at(rows: &[Vec<f64>], row: usize, column: usize) -> f64 {
    rows[row].get(column).copied().unwrap_or(f64::NAN)
}

/// Where a value changes its sign between two points.
fn crossing(from: (f64, f64, f64), to: (f64, f64, f64)) -> Option<(f64, f64)> {
    let is_known = from.2.is_finite() && to.2.is_finite();
    (is_known && (from.2 >= 0.0) != (to.2 >= 0.0)).then(|| {
        let share = from.2 / (from.2 - to.2);
        (from.0 + share * (to.0 - from.0), from.1 + share * (to.1 - from.1))
    })
}

/// The edges of cells around these coordinates: half-way between neighbours.
fn edges(middles: &[f64]) -> Vec<f64> {
    let (Some(first), Some(last)) = (middles.first(), middles.last()) else { return Vec::new() };
    let step = |at: usize| match middles.get(at..at + 2) {
        Some([a, b]) => b - a,
        _ => 1.0,
    };
    let mut edges = vec![first - step(0) / 2.0];
    edges.extend(middles.windows(2).map(|two| f64::midpoint(two[0], two[1])));
    edges.push(last + step(middles.len().saturating_sub(2)) / 2.0);
    edges
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The value is the sum of the coordinates.
    fn region(border: f64) -> Region {
        let columns = vec![0.0, 1.0, 2.0, 3.0];
        let rows = vec![0.0, 1.0, 2.0];
        let values = rows.iter().map(|y| columns.iter().map(|x| x + y).collect()).collect();
        Region { columns, rows, values, border, ..Region::default() }
    }

    #[test]
    fn the_border_lies_where_the_value_is() {
        let segments = region(2.5).segments();
        assert_eq!(segments.len(), 4, "{segments:?}");
        for (x, y) in segments.iter().flatten() {
            assert!((x + y - 2.5).abs() < 1e-9, "{x} {y}");
        }
        assert!(region(-1.0).segments().is_empty());
    }

    #[test]
    fn a_saddle_has_two_lines() {
        for (values, above) in [([[3.0, 0.0], [0.0, 3.0]], 3.0), ([[1.2, 0.0], [0.0, 1.2]], 1.2)] {
            let region = Region {
                columns: vec![0.0, 1.0],
                rows: vec![0.0, 1.0],
                values: values.map(Vec::from).to_vec(),
                border: 1.0,
                ..Region::default()
            };
            let segments = region.segments();
            assert_eq!(segments.len(), 2);
            // With a middle below the border, each line keeps to a corner above it.
            let near = |(x, y): (f64, f64)| (x < 0.5) == (y < 0.5);
            let corners =
                segments.iter().all(|[a, b]| near(((a.0 + b.0) / 2.0, (a.1 + b.1) / 2.0)));
            assert_eq!(corners, above < 2.0, "{segments:?}");
        }
    }

    #[test]
    fn each_value_has_a_cell_of_its_side() {
        let mut region = region(2.5);
        region.values[0][0] = f64::NAN;
        region.marks = vec![("a<b".to_owned(), 1.0, 1.0)];
        let svg = region.svg();
        assert_eq!(svg.matches("class=\"cell ink2").count(), 6, "{svg}");
        assert_eq!(svg.matches("class=\"cell ink1").count(), 5, "{svg}");
        assert!(svg.contains("a&lt;b") && !svg.contains("NaN"), "{svg}");
    }

    #[test]
    fn cells_touch_each_other() {
        assert_eq!(edges(&[1.0, 3.0, 6.0]), [0.0, 2.0, 4.5, 7.5]);
        assert_eq!(edges(&[2.0]), [1.5, 2.5]);
        assert!(edges(&[]).is_empty());
    }
}
