//! The caller's side of a simulated run: when tokens came, and what the devices had done by then.

use lapwing_traces::Nanos;

use super::{Moment, Seen};
use crate::drive::simulated::Simulation;
use crate::drive::soc::SocRunError;
use crate::error::RunError;
use crate::message::{Posted, StreamEvent};

/// What a caller saw.
pub(super) struct Watch {
    streams: Vec<Option<flume::Receiver<Posted<StreamEvent>>>>,
    cancel: Option<Nanos>,
    /// Streams whose first token is here.
    begun: Vec<bool>,
    /// Time of the last first token, with what the devices had done.
    first: Option<Moment>,
    /// Time of the latest token.
    last: Option<Moment>,
    /// Tokens after the time that `first` tells, of all streams.
    later: usize,
    /// Tokens of the first stream.
    tokens: Vec<u32>,
    failed: Option<(Nanos, RunError)>,
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
                        let usage = || simulation.usage().cloned().unwrap_or_default();
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
                    StreamEvent::Failed(error) => self.failed = Some((now, error)),
                    StreamEvent::Scores(_) | StreamEvent::Finished(_) => {}
                }
            }
        }
    }

    /// What was seen by callers who asked at `begin`.
    pub(super) fn seen(self, begin: Moment) -> Result<Seen, SocRunError> {
        if let Some((at, error)) = self.failed {
            return Err(SocRunError::Failed { at, error });
        }
        let first = self.first.ok_or(SocRunError::Cancelled)?;
        let last = self.last.unwrap_or_else(|| first.clone());
        Ok(Seen { begin, first, last, later: self.later, tokens: self.tokens })
    }
}
