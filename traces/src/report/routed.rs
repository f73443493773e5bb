//! Which of several routes chunks took, and why.

use serde::Serialize;

use crate::timeline::{RatedRoute, RouteChoice, Timeline};

/// A chunk that could take several routes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RoutedReport {
    /// Number of the chunk.
    pub chunk: u64,
    /// Devices of its route.
    pub route: String,
    /// Predicted time until its end, in ms.
    pub end_ms: f64,
    /// Devices of the route that it would have taken on idle devices.
    pub alone: String,
    /// Predicted time until its end on that route, in ms.
    pub alone_end_ms: f64,
    /// Whether it passed chunks that waited for its devices, because its streams were due.
    pub is_due: bool,
    /// All routes that it could take, the one for idle devices first.
    pub routes: Vec<RatedRouteReport>,
    /// Why it took this one, as a sentence; `None` where the routes are not recorded.
    pub why: Option<String>,
}

/// A route that a chunk could take.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RatedRouteReport {
    /// Its devices.
    pub route: String,
    /// Predicted time until the chunk's end on it, in ms.
    pub end_ms: f64,
    /// The same on idle devices, in ms.
    pub alone_ms: f64,
    /// Longest predicted time until one of its devices has done what it was sent before, in ms.
    pub busy_ms: f64,
    /// False if the chunk would have ended earlier on it, but its graphs were not ready.
    pub is_ready: bool,
}

pub(super) fn routed(timeline: &Timeline) -> Vec<RoutedReport> {
    timeline.routed.iter().map(|(chunk, choice)| report(*chunk, choice)).collect()
}

/// Nanoseconds in milliseconds.
pub(super) fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}

fn report(chunk: u64, choice: &RouteChoice) -> RoutedReport {
    let rated = |it: &RatedRoute| RatedRouteReport {
        route: it.route.clone(),
        end_ms: ms(it.end),
        alone_ms: ms(it.alone),
        busy_ms: ms(it.busy),
        is_ready: it.is_ready,
    };
    RoutedReport {
        chunk,
        route: choice.route.clone(),
        end_ms: ms(choice.end),
        alone: choice.alone.clone(),
        alone_end_ms: ms(choice.alone_end),
        is_due: choice.is_due,
        routes: choice.routes.iter().map(rated).collect(),
        why: why(choice),
    }
}

/// A time in ms with a microsecond's precision where it is short.
fn shown(ns: u64) -> String {
    match ns {
        ..10_000_000 => format!("{:.3} ms", ms(ns)),
        _ => format!("{:.1} ms", ms(ns)),
    }
}

/// Why a chunk took its route.
fn why(choice: &RouteChoice) -> Option<String> {
    let first = choice.routes.first()?;
    let turn = if choice.is_due { "its streams are due, so that it passes others; " } else { "" };
    let taken = match choice.end < choice.alone_end {
        false if first.busy == 0 => "it is the fastest route on idle devices".to_owned(),
        false => {
            format!("it ends first although its devices are busy for another {}", shown(first.busy))
        }
        true => format!(
            "it ends {} earlier than on {}, whose devices are busy for another {}",
            shown(choice.alone_end - choice.end),
            choice.alone,
            shown(first.busy)
        ),
    };
    let unready: Vec<&str> =
        choice.routes.iter().filter(|it| !it.is_ready).map(|it| &*it.route).collect();
    let graphs = match unready.is_empty() {
        true => String::new(),
        false => format!(
            "; it would have ended earlier on {}, whose graphs were not ready",
            unready.join(" and on ")
        ),
    };
    Some(format!("{turn}{taken}{graphs}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rated(route: &str, [end, alone, busy]: [u64; 3]) -> RatedRoute {
        let [end, alone, busy] = [end, alone, busy].map(|ms| ms * 1_000_000);
        RatedRoute { route: route.to_owned(), end, alone, busy, is_ready: true }
    }

    fn choice(at: usize, routes: Vec<RatedRoute>) -> RouteChoice {
        let (taken, first) = (&routes[at], &routes[0]);
        let (route, end) = (taken.route.clone(), taken.end);
        let (alone, alone_end) = (first.route.clone(), first.end);
        RouteChoice { route, end, alone, alone_end, is_due: false, routes }
    }

    #[test]
    fn a_sentence_says_why_a_chunk_went_where_it_did() {
        let idle = choice(0, vec![rated("cpu+npu", [50, 50, 0]), rated("cpu", [90, 90, 0])]);
        let busy = choice(0, vec![rated("cpu+npu", [70, 50, 20]), rated("cpu", [90, 90, 0])]);
        let other = choice(1, vec![rated("cpu+npu", [131, 50, 81]), rated("cpu", [90, 90, 0])]);
        let due = RouteChoice { is_due: true, ..idle.clone() };
        let mut graphs = idle.clone();
        graphs.routes[1].is_ready = false;
        let rows = [
            (&idle, "it is the fastest route on idle devices"),
            (&busy, "it ends first although its devices are busy for another 20.0 ms"),
            (
                &other,
                "it ends 41.0 ms earlier than on cpu+npu, whose devices are busy for another 81.0 ms",
            ),
            (
                &due,
                "its streams are due, so that it passes others; it is the fastest route on idle devices",
            ),
            (
                &graphs,
                "it is the fastest route on idle devices; it would have ended earlier on cpu, whose graphs were not ready",
            ),
        ];
        for (choice, expected) in rows {
            assert_eq!(why(choice).as_deref(), Some(expected));
        }
        assert_eq!(why(&RouteChoice { routes: Vec::new(), ..idle }), None);
    }
}
