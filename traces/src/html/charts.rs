//! Charts of predicted waits: histogram of the error, and calibration curve.

use std::fmt::Write;

use super::text::{self, Escaped};
use crate::report::WaitReport;

const WIDTH: f64 = 300.0;
const HEIGHT: f64 = 130.0;
/// Space for labels at the left.
const LEFT: f64 = 8.0;
/// Space for labels below.
const BELOW: f64 = 20.0;
/// Most bars drawn; a report may have any number.
const BARS_MAX: usize = 200;

/// Both charts of one kind of wait.
pub(super) fn wait(wait: &WaitReport) -> String {
    let mut html = String::new();
    if wait.histogram.is_empty() && wait.calibration.is_empty() {
        return html;
    }
    let _ = writeln!(html, "<h4><bdi>{}</bdi>, {}</h4>", Escaped(&wait.name), wait.mode);
    html.push_str("<div class=\"charts\">\n");
    html.push_str(&histogram(&wait.histogram));
    html.push_str(&calibration(&wait.calibration));
    html.push_str("</div>\n");
    html
}

fn open(label: &str) -> String {
    format!(
        "<figure><svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{label}\">\
         <path class=\"axis\" d=\"M{LEFT} 4V{0}H{WIDTH}\"/>\n",
        HEIGHT - BELOW
    )
}

fn label(svg: &mut String, x: f64, anchor: &str, text: &str) {
    let y = HEIGHT - 5.0;
    let _ = writeln!(svg, "<text x=\"{x:.1}\" y=\"{y}\" text-anchor=\"{anchor}\">{text}</text>");
}

fn histogram(bars: &[(i64, usize)]) -> String {
    let bars = &bars[..bars.len().min(BARS_MAX)];
    let (Some(first), Some(last)) = (bars.first(), bars.last()) else { return String::new() };
    let most = bars.iter().map(|(_, count)| *count).max().unwrap_or(0).max(1);
    let mut svg = open("Histogram of the prediction error (actual minus predicted time)");
    let step = (WIDTH - LEFT) / bars.len() as f64;
    let floor = HEIGHT - BELOW;
    for (at, (bound, count)) in bars.iter().enumerate() {
        let height = *count as f64 / most as f64 * (floor - 6.0);
        let (x, y, width) = (LEFT + at as f64 * step, floor - height, (step - 1.0).max(0.5));
        let sign = if *bound <= 0 { "early" } else { "late" };
        let _ = writeln!(
            svg,
            "<rect class=\"{sign}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" \
             height=\"{height:.1}\"><title>up to {}: {count}</title></rect>",
            text::nanos(*bound as f64)
        );
    }
    let early = bars.iter().filter(|(bound, _)| *bound <= 0).count();
    if early > 0 && early < bars.len() {
        let x = LEFT + early as f64 * step;
        let _ = writeln!(svg, "<path class=\"zero\" d=\"M{x:.1} 4V{floor}\"/>");
        label(&mut svg, x, "middle", "0");
    }
    label(&mut svg, LEFT, "start", &format!("≤ {}", text::nanos(first.0 as f64)));
    label(&mut svg, WIDTH, "end", &text::nanos(last.0 as f64));
    svg + "</svg><figcaption>Prediction error (actual − predicted), waits per bin</figcaption></figure>\n"
}

fn calibration(points: &[(f64, f64)]) -> String {
    let points: Vec<(f64, f64)> =
        points.iter().filter(|p| p.0.is_finite() && p.1.is_finite()).copied().collect();
    let most = points.iter().map(|p| p.0.max(p.1)).fold(0.0, f64::max);
    if most <= 0.0 {
        return String::new();
    }
    let floor = HEIGHT - BELOW;
    let place = |value: f64| value.max(0.0) / most;
    let x = |value: f64| LEFT + place(value) * (WIDTH - LEFT - 8.0);
    let y = |value: f64| floor - place(value) * (floor - 10.0);
    let mut svg = open("Mean actual time over mean predicted time");
    let _ = writeln!(
        svg,
        "<path class=\"ideal\" d=\"M{:.1} {:.1}L{:.1} {:.1}\"/>",
        x(0.0),
        y(0.0),
        x(most),
        y(most)
    );
    let mut line = String::new();
    for (at, (predicted, actual)) in points.iter().enumerate() {
        let step = if at == 0 { 'M' } else { 'L' };
        let _ = write!(line, "{step}{:.1} {:.1}", x(*predicted), y(*actual));
    }
    let _ = writeln!(svg, "<path class=\"line\" d=\"{line}\"/>");
    for (predicted, actual) in &points {
        let _ = writeln!(
            svg,
            "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"2.5\"><title>predicted {}, actual \
             {}</title></circle>",
            x(*predicted),
            y(*actual),
            text::nanos(*predicted),
            text::nanos(*actual)
        );
    }
    label(&mut svg, LEFT, "start", "predicted → 0");
    label(&mut svg, WIDTH, "end", &text::nanos(most));
    svg + "</svg><figcaption>Calibration: actual (vertical) over predicted time (horizontal); dashed: \
           perfect prediction</figcaption></figure>\n"
}
