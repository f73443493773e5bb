//! The caller's side of a simulated run: times of tokens, with the devices' usage at those times.

use lapwing_traces::Nanos;

use super::{Moment, Seen};
use crate::drive::simulated::Simulation;
use crate::message::{StreamEvent, Traced};
use crate::simulate::error::SocRunError;

/// Number of frames after which a run is aborted; at 60 Hz, more than four hours.
const FRAMES_MAX: usize = 1_000_000;

/// Observes the stream of a caller.
pub(super) struct Watch {
    stream: Option<flume::Receiver<Traced<StreamEvent>>>,
    cancel: Option<Nanos>,
    /// Moment of the first token.
    first: Option<Moment>,
    /// Moment of the latest token.
    last: Option<Moment>,
    /// Number of tokens after the first.
    later: usize,
    /// Ids of all tokens.
    tokens: Vec<u32>,
    failed: Option<SocRunError>,
}

impl Watch {
    pub(super) fn new(
        stream: flume::Receiver<Traced<StreamEvent>>,
        cancel: Option<Nanos>,
    ) -> Watch {
        Watch {
            stream: Some(stream),
            cancel,
            first: None,
            last: None,
            later: 0,
            tokens: Vec::new(),
            failed: None,
        }
    }

    /// Runs the simulation until no event is left.
    pub(super) fn run(&mut self, simulation: &mut Simulation) {
        loop {
            // The stream is dropped right before the scheduler's wake message.
            if self.cancel.is_some_and(|at| simulation.next_at().is_some_and(|next| next >= at)) {
                (self.stream, self.cancel) = (None, None);
            }
            let (at, frames) = (simulation.now(), simulation.frames());
            if at.0 == u64::MAX || frames > FRAMES_MAX {
                self.failed = Some(SocRunError::TooLong { at, frames });
                return;
            }
            if !simulation.step() {
                return;
            }
            self.look(simulation);
        }
    }

    fn look(&mut self, simulation: &Simulation) {
        let now = simulation.now();
        let events = self.stream.iter().flat_map(flume::Receiver::try_iter);
        for event in events {
            match event.message {
                StreamEvent::Token(token) => {
                    self.tokens.push(token.id);
                    let usage = simulation.usage().unwrap_or_default();
                    let seen = Moment { at: now, usage };
                    match self.first {
                        None => self.first = Some(seen.clone()),
                        Some(_) => self.later += 1,
                    }
                    self.last = Some(seen);
                }
                StreamEvent::Failed(error) => {
                    self.failed = Some(SocRunError::Failed { at: now, error });
                }
                StreamEvent::Prompt(_)
                | StreamEvent::Scores(_)
                | StreamEvent::Hidden(_)
                | StreamEvent::Finished(_) => {}
            }
        }
    }

    /// The error of an aborted run, after which the engine is not empty.
    pub(super) fn result_if_given_up(&self) -> Result<(), SocRunError> {
        match &self.failed {
            Some(error @ SocRunError::TooLong { .. }) => Err(error.clone()),
            _ => Ok(()),
        }
    }

    /// The observations of a caller whose request was sent at `begin`.
    pub(super) fn seen(self, begin: Moment) -> Result<Seen, SocRunError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let first = self.first.ok_or(SocRunError::Cancelled)?;
        let last = self.last.unwrap_or_else(|| first.clone());
        Ok(Seen { begin, first, last, later: self.later, tokens: self.tokens })
    }
}
