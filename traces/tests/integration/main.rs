//! Integration tests of recordings, timelines, analysis, pages and exports.
#![cfg(not(loom))]
#![expect(clippy::unwrap_used, reason = "tests")]

mod a_chart_misleads;
mod a_device_clock_drifts;
mod a_page_breaks;
#[cfg(feature = "layer")]
mod a_program_is_shown_wrongly;
mod a_recording_has_many_lanes;
mod a_recording_is_hostile;
mod a_recording_loses_something;
mod a_stream_is_late;
#[cfg(feature = "layer")]
mod a_thread_is_shown_wrongly;
#[cfg(feature = "layer")]
mod a_travelling_span_is_lost;
mod a_window_shows_something_else;
mod an_export_loses_something;
mod an_overlap_of_three_is_lost;
mod any_recording;
mod known_answers;
mod known_changes;
mod laws;
mod protobuf;
mod reading_is_lost;
mod runs;
mod the_recorder_drops_something;
mod wasted_work_is_lost;
