//! `GET /debug/timeline`: what the devices did in the last seconds.

use std::collections::HashMap;
use std::time::Duration;

use axum::extract::{Extension, Query};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use lapwing_traces::analysis::Analysis;
use lapwing_traces::html::{self, PageRun};
use lapwing_traces::report::Report;
use lapwing_traces::timeline::Timeline;
use lapwing_traces::{Nanos, Recorder, Recording};

use super::app::{Call, blocking};
use super::config::seconds;
use super::error::ApiError;

/// Seconds that are shown if the request names none.
const SECONDS: f64 = 10.0;

/// Shows a model's timeline.
pub(crate) async fn timeline(
    Extension(call): Extension<Call>,
    Query(query): Query<HashMap<String, String>>,
) -> Result<Response, ApiError> {
    let spec =
        &call.app.models.specs()[call.app.models.find(query.get("model").map(String::as_str))?];
    let asked = query.get("seconds").map_or(Ok(SECONDS), |text| text.parse::<f64>());
    let asked = asked
        .ok()
        .filter(|asked| *asked > 0.0)
        .ok_or_else(|| ApiError::field("seconds", "seconds must be a positive number"))?;
    let Some(recorder) = spec.recorder.clone() else {
        return Err(ApiError::new(
            StatusCode::NOT_FOUND,
            "no_timeline",
            "nothing is recorded, because the server was started with timeline_events = 0",
        ));
    };
    let name = spec.name.clone();
    let page = blocking(move || page(&recorder, &name, seconds(asked))).await?;
    let page = page
        .map_err(|error| ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "no_timeline", error))?;
    let mut response = page.into_response();
    let kind = HeaderValue::from_static("text/html; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    Ok(response)
}

/// The page of the last `time`.
fn page(recorder: &Recorder, title: &str, time: Duration) -> Result<String, String> {
    let now = recorder.clock().now();
    let all = recorder.recording();
    let time = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let since = Nanos(now.0.saturating_sub(time));
    let events = all.events.iter().filter(|event| event.at >= since).copied().collect();
    let recording = Recording { events, ..all };
    let timeline = Timeline::new(&recording);
    let analysis = Analysis::new(&timeline);
    let report = Report::new(&timeline, &analysis);
    let run = PageRun { title, timeline: &timeline, analysis: &analysis, report: &report };
    html::page(&[run]).map_err(|error| error.to_string())
}
