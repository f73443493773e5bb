//! `GET /debug/timeline` and `GET /debug/lanes`: what the devices did in the last seconds, as a page and in numbers.

use std::collections::HashMap;
use std::time::Duration;

use axum::Json;
use axum::extract::{Extension, Query};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use lapwing_traces::analysis::{Analysis, busy_shares};
use lapwing_traces::event::LaneKind;
use lapwing_traces::html::{self, PageRun};
use lapwing_traces::report::Report;
use lapwing_traces::timeline::Timeline;
use lapwing_traces::{Nanos, Recorder, Scope};

use serde_json::{Value, json};

use super::app::{Call, blocking};
use super::config::seconds;
use super::error::ApiError;

/// Seconds that are shown if the request names none.
const SECONDS: f64 = 10.0;

/// Parts of the time for which `/debug/lanes` tells how busy a device was.
const CELLS: usize = 100;

/// What a request asks for.
struct Asked {
    /// Name of the model.
    name: String,
    recorder: Recorder,
    time: Duration,
}

impl Asked {
    fn new(call: &Call, query: &HashMap<String, String>) -> Result<Asked, ApiError> {
        let models = &call.app.models;
        let spec = &models.specs()[models.find(query.get("model").map(String::as_str))?];
        let asked = query.get("seconds").map_or(Ok(SECONDS), |text| text.parse::<f64>());
        let asked = asked
            .ok()
            .filter(|asked| *asked > 0.0)
            .ok_or_else(|| ApiError::field("seconds", "seconds must be a positive number"))?;
        let is_on = |recorder: &Recorder| recorder.scope() != Scope::Off;
        let Some(recorder) = spec.recorder.clone().filter(is_on) else {
            return Err(ApiError::new(
                StatusCode::NOT_FOUND,
                "no_timeline",
                "nothing is recorded: the server was started with timeline_events = 0, or the recorder of an engine \
                 that it did not start is off",
            ));
        };
        Ok(Asked { name: spec.name.clone(), recorder, time: seconds(asked) })
    }

    /// The timeline of the last seconds, with its start and its end.
    fn timeline(&self) -> (Timeline, Nanos, Nanos) {
        let now = self.recorder.clock().now();
        let time = u64::try_from(self.time.as_nanos()).unwrap_or(u64::MAX);
        let since = Nanos(now.0.saturating_sub(time));
        // Earlier events tell what was running at the start of the window.
        let recording = self.recorder.recording_since(since);
        (Timeline::of_window(&recording, since, now), since, now)
    }

    fn page(&self) -> Result<String, String> {
        let (timeline, ..) = self.timeline();
        let analysis = Analysis::new(&timeline);
        let report = Report::new(&timeline, &analysis);
        let run = PageRun {
            title: &self.name,
            timeline: &timeline,
            analysis: &analysis,
            report: &report,
        };
        html::page(&[run]).map_err(|error| error.to_string())
    }

    fn lanes(&self) -> Value {
        let (timeline, since, now) = self.timeline();
        let busy = busy_shares(&timeline, since, now, CELLS);
        let lanes = timeline.lanes.iter().zip(busy);
        let lanes: Vec<Value> = lanes
            .filter(|(lane, _)| matches!(lane.kind, LaneKind::Device | LaneKind::Link))
            .map(|(lane, cells)| {
                let busy = cells.iter().sum::<f64>() / CELLS as f64;
                let cells: Vec<f64> = cells.iter().copied().map(rounded).collect();
                json!({ "name": lane.name, "kind": lane.kind.name(), "busy": rounded(busy), "cells": cells })
            })
            .collect();
        json!({ "model": self.name, "seconds": self.time.as_secs_f64(), "lanes": lanes })
    }
}

fn rounded(share: f64) -> f64 {
    (share * 1e3).round() / 1e3
}

/// Shows a model's timeline.
pub(crate) async fn timeline(
    Extension(call): Extension<Call>,
    Query(query): Query<HashMap<String, String>>,
) -> Result<Response, ApiError> {
    let asked = Asked::new(&call, &query)?;
    let page = blocking(move || asked.page()).await?;
    let page = page
        .map_err(|error| ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "no_timeline", error))?;
    let mut response = page.into_response();
    let kind = HeaderValue::from_static("text/html; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    Ok(response)
}

/// Tells how busy each device of a model was: in all, and in each hundredth of the time.
pub(crate) async fn lanes(
    Extension(call): Extension<Call>,
    Query(query): Query<HashMap<String, String>>,
) -> Result<Json<Value>, ApiError> {
    let asked = Asked::new(&call, &query)?;
    Ok(Json(blocking(move || asked.lanes()).await?))
}

#[cfg(test)]
mod tests;
