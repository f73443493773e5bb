//! What can go wrong with recording, saving and reading a run.
#![cfg(not(loom))]

mod a_recording_is_hostile;
mod a_recording_loses_something;
mod any_recording;
mod the_recorder_drops_something;
