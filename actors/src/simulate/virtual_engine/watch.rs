//! The caller's side of a simulated run: when tokens came, and what the devices had done by then.

use lapwing_traces::Nanos;

use super::{Moment, Seen};
use crate::drive::simulated::Simulation;
use crate::message::{StreamEvent, Traced};
use crate::simulate::error::SocRunError;

/// Frames beside a run before it is given up, of 60 Hz more than four hours.
const FRAMES_MAX: usize = 1_000_000;

/// What a caller saw.
pub(super) struct Watch {
    stream: Option<flume::Receiver<Traced<StreamEvent>>>,
    cancel: Option<Nanos>,
    /// Time of the first token, with what the devices had done.
    first: Option<Moment>,
    /// Time of the latest token.
    last: Option<Moment>,
    /// Tokens after the first.
    later: usize,
    /// All tokens.
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

    /// Lets everything happen.
    pub(super) fn run(&mut self, simulation: &mut Simulation) {
        loop {
            // It leaves right before the message that tells of it.
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
                    let seen = (now, simulation.usage().unwrap_or_default());
                    match self.first {
                        None => self.first = Some(seen.clone()),
                        Some(_) => self.later += 1,
                    }
                    self.last = Some(seen);
                }
                StreamEvent::Failed(error) => {
                    self.failed = Some(SocRunError::Failed { at: now, error });
                }
                StreamEvent::Scores(_) | StreamEvent::Finished(_) => {}
            }
        }
    }

    /// Whether it was given up, so that the engine is not empty.
    pub(super) fn result_if_given_up(&self) -> Result<(), SocRunError> {
        match &self.failed {
            Some(error @ SocRunError::TooLong { .. }) => Err(error.clone()),
            _ => Ok(()),
        }
    }

    /// What was seen by a caller who asked at `begin`.
    pub(super) fn seen(self, begin: Moment) -> Result<Seen, SocRunError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let first = self.first.ok_or(SocRunError::Cancelled)?;
        let last = self.last.unwrap_or_else(|| first.clone());
        Ok(Seen { begin, first, last, later: self.later, tokens: self.tokens })
    }
}
