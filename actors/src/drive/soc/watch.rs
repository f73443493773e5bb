//! The caller's side of a simulated run: when tokens came, and what the devices had done by then.

use lapwing_traces::Nanos;

use super::SocRunError;
use crate::drive::simulated::{Simulation, Usage};
use crate::message::{Posted, StreamEvent};

/// Frames beside a run before it is given up, of 60 Hz more than four hours.
const FRAMES_MAX: usize = 1_000_000;

/// What a caller saw.
pub(super) struct Watch {
    streams: Vec<Option<flume::Receiver<Posted<StreamEvent>>>>,
    cancel: Option<Nanos>,
    /// Streams whose first token is here.
    begun: Vec<bool>,
    /// Time of the last first token, with what the devices had done.
    pub(super) first: Option<(Nanos, Usage)>,
    /// Time of the latest token.
    pub(super) last: Option<(Nanos, Usage)>,
    /// Tokens after the time that `first` tells, of all streams.
    pub(super) later: usize,
    /// Tokens of the first stream.
    pub(super) tokens: Vec<u32>,
    failed: Option<SocRunError>,
}

impl Watch {
    pub(super) fn new(cancel: Option<Nanos>) -> Watch {
        Watch {
            streams: Vec::new(),
            cancel,
            begun: Vec::new(),
            first: None,
            last: None,
            later: 0,
            tokens: Vec::new(),
            failed: None,
        }
    }

    pub(super) fn add(&mut self, stream: flume::Receiver<Posted<StreamEvent>>) {
        self.streams.push(Some(stream));
        self.begun.push(false);
    }

    /// Lets everything happen.
    pub(super) fn run(&mut self, simulation: &mut Simulation) {
        loop {
            // It leaves right before the message that tells of it.
            if self.cancel.is_some_and(|at| simulation.next_at().is_some_and(|next| next >= at)) {
                self.streams.iter_mut().for_each(|stream| *stream = None);
                self.cancel = None;
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
        for (at, stream) in self.streams.iter().enumerate() {
            let Some(stream) = stream else { continue };
            for event in stream.try_iter() {
                match event.message {
                    StreamEvent::Token(token) => {
                        if at == 0 {
                            self.tokens.push(token.id);
                        }
                        let usage = || simulation.usage().unwrap_or_default();
                        if self.begun[at] {
                            self.later += 1;
                        }
                        self.begun[at] = true;
                        let is_first =
                            self.begun.iter().all(|begun| *begun) && self.first.is_none();
                        if is_first {
                            (self.first, self.later) = (Some((now, usage())), 0);
                        }
                        self.last = Some((now, usage()));
                    }
                    StreamEvent::Failed(error) => {
                        self.failed = Some(SocRunError::Failed { at: now, error });
                    }
                    StreamEvent::Scores(_) | StreamEvent::Finished(_) => {}
                }
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

    /// Whether there is anything to tell.
    pub(super) fn result(&self) -> Result<(), SocRunError> {
        match &self.failed {
            Some(error) => Err(error.clone()),
            None if self.first.is_none() => Err(SocRunError::Cancelled),
            None => Ok(()),
        }
    }
}
