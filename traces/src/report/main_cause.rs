//! The main cause of idle time.

use super::IdleReport;

/// What a dependency's cause begins with, before the lane.
const DEPENDENCY: &str = "dependency on ";

/// Lanes that a main cause names.
const LANES_MAX: usize = 2;

/// The cause of most idle time, and its time, from the time of each cause. Dependencies on several lanes are one cause, which
/// names the lanes that were awaited longest. `None` without idle time.
///
/// ```
/// use lapwing_traces::report::main_cause;
///
/// let idle = [("restart", 3.0), ("dependency on gpu", 2.0), ("dependency on npu", 2.5)];
/// assert_eq!(main_cause(idle), Some(("dependency on npu and gpu".to_owned(), 4.5)));
/// ```
pub fn main_cause<'a>(idle: impl IntoIterator<Item = (&'a str, f64)>) -> Option<(String, f64)> {
    let (mut awaited, mut others) = (Vec::new(), Vec::new());
    for (cause, time) in idle.into_iter().filter(|(_, time)| *time > 0.0) {
        match cause.strip_prefix(DEPENDENCY) {
            Some(lane) => awaited.push((lane, time)),
            None => others.push((cause.to_owned(), time)),
        }
    }
    awaited.sort_by(|a, b| b.1.total_cmp(&a.1));
    if !awaited.is_empty() {
        let lanes: Vec<&str> = awaited.iter().take(LANES_MAX).map(|(lane, _)| *lane).collect();
        let more = if awaited.len() > LANES_MAX { " and others" } else { "" };
        let time = awaited.iter().map(|(_, time)| time).sum();
        others.push((format!("{DEPENDENCY}{}{more}", lanes.join(" and ")), time));
    }
    others.into_iter().max_by(|a, b| a.1.total_cmp(&b.1))
}

impl IdleReport {
    /// The main cause of these, as [`main_cause`].
    pub fn main(idle: &[IdleReport]) -> Option<String> {
        let times = idle.iter().map(|idle| (idle.cause.as_str(), idle.ns as f64));
        main_cause(times).map(|(cause, _)| cause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_cause_is_not_the_main_one_beside_several_dependencies() {
        let main = |idle: &[(&'static str, f64)]| main_cause(idle.iter().copied());
        let named = |cause: &str, time: f64| Some((cause.to_owned(), time));
        assert_eq!(main(&[("restart", 0.1)]), named("restart", 0.1));
        assert_eq!(main(&[("restart", 0.1), ("not used", 20.0)]), named("not used", 20.0));
        let several = [
            ("dependency on a", 2.0),
            ("end", 4.5),
            ("dependency on b", 1.0),
            ("dependency on c", 3.0),
        ];
        assert_eq!(main(&several), named("dependency on c and a and others", 6.0));
        assert_eq!(main(&[]), None);
        assert_eq!(main(&[("end", 0.0)]), None);
    }
}
