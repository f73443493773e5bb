//! The callers' side of a simulated run: times of tokens, with the devices' usage at those times.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use lapwing_traces::Nanos;

use super::Moment;
use crate::drive::simulated::Simulation;
use crate::message::{SchedulerMessage, Sink, StreamEvent, Submit, Traced};
use crate::sequence::AdmissionPermit;
use crate::simulate::arrival::{Arrival, Failed, Served};
use crate::simulate::error::SocRunError;

/// Number of frames after which a run is aborted; at 60 Hz, more than four hours.
const FRAMES_MAX: usize = 1_000_000;

/// Receives the events of all requests until the watch has seen them.
#[derive(Debug, Default)]
struct Inbox(Mutex<Vec<(usize, StreamEvent)>>);

/// The stream of one request.
#[derive(Debug)]
struct Stream {
    number: usize,
    inbox: Arc<Inbox>,
    /// Whether its caller drops it at some time.
    is_cancelled: bool,
    /// Whether its caller has dropped it.
    closed: AtomicBool,
}

impl Sink for Stream {
    fn send(&self, event: Traced<StreamEvent>) {
        if !self.is_closed() {
            let mut events = self.inbox.0.lock().unwrap_or_else(PoisonError::into_inner);
            events.push((self.number, event.message));
        }
    }

    fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    fn may_close(&self) -> bool {
        self.is_cancelled
    }
}

/// A request that others must precede.
struct Later {
    number: usize,
    at: Nanos,
    /// Requests that have not ended.
    after: Vec<usize>,
    submit: Box<Submit>,
}

/// Observes the streams of callers.
pub(super) struct Watch {
    inbox: Arc<Inbox>,
    streams: Vec<Arc<Stream>>,
    later: Vec<Later>,
    /// Requests that their callers cancel, and when.
    cancels: Vec<(Nanos, usize)>,
    served: Vec<Served>,
}

impl Watch {
    pub(super) fn new(arrivals: &[Arrival]) -> Watch {
        let inbox = Arc::new(Inbox::default());
        let stream = |(number, arrival): (usize, &Arrival)| {
            let (inbox, closed) = (Arc::clone(&inbox), AtomicBool::new(false));
            Arc::new(Stream { number, inbox, is_cancelled: arrival.cancel.is_some(), closed })
        };
        let streams = arrivals.iter().enumerate().map(stream).collect();
        let cancels = arrivals.iter().enumerate();
        let cancels = cancels.filter_map(|(number, arrival)| Some((arrival.cancel?, number)));
        let (cancels, served) = (cancels.collect(), vec![Served::default(); arrivals.len()]);
        Watch { streams, later: Vec::new(), cancels, served, inbox }
    }

    /// Sends the request of that number at its time, after those that precede it.
    pub(super) fn send(
        &mut self,
        simulation: &mut Simulation,
        number: usize,
        arrival: &Arrival,
        admission: AdmissionPermit,
    ) {
        let submit = Box::new(arrival.clone().submit(self.sink(number), admission));
        let Arrival { at, after, .. } = arrival;
        let later = Later { number, at: *at, after: after.clone(), submit };
        match after.is_empty() {
            true => self.arrive(simulation, later),
            false => self.later.push(later),
        }
    }

    fn arrive(&mut self, simulation: &mut Simulation, Later { number, at, submit, .. }: Later) {
        let at = at.max(simulation.now());
        self.served[number].arrived = at;
        simulation.send_at(at, SchedulerMessage::Submit(submit));
    }

    /// Sends what no longer waits for another request when one has ended.
    fn ended(&mut self, simulation: &mut Simulation, ended: usize) {
        self.later.iter_mut().for_each(|later| later.after.retain(|before| *before != ended));
        let all = std::mem::take(&mut self.later).into_iter();
        let (ready, later): (Vec<Later>, Vec<Later>) = all.partition(|it| it.after.is_empty());
        self.later = later;
        ready.into_iter().for_each(|later| self.arrive(simulation, later));
    }

    /// The caller's end of the request of that number.
    pub(super) fn sink(&self, number: usize) -> Arc<dyn Sink> {
        Arc::clone(&self.streams[number]) as Arc<dyn Sink>
    }

    /// Runs the simulation until no event is left, or until a virtual time.
    ///
    /// # Errors
    /// [`SocRunError::TooLong`], after which the engine is not empty.
    pub(super) fn run(
        &mut self,
        simulation: &mut Simulation,
        until: Option<Nanos>,
    ) -> Result<(), SocRunError> {
        while until.is_none_or(|until| simulation.now() < until) {
            // A stream is dropped right before the scheduler's wake message.
            if let Some(next) = simulation.next_at() {
                let streams = &self.streams;
                self.cancels.retain(|(at, number)| {
                    streams[*number].closed.fetch_or(next >= *at, Ordering::Relaxed);
                    next < *at
                });
            }
            let (at, frames) = (simulation.now(), simulation.frames());
            if at.0 == u64::MAX || frames > FRAMES_MAX {
                return Err(SocRunError::TooLong { at, frames });
            }
            if !simulation.step() {
                break;
            }
            self.look(simulation);
        }
        Ok(())
    }

    fn look(&mut self, simulation: &mut Simulation) {
        let mut events = self.inbox.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (at, mut ended) = (simulation.now(), Vec::new());
        for (number, event) in events.drain(..) {
            let served = &mut self.served[number];
            match event {
                StreamEvent::Token(token) => {
                    let usage = simulation.usage().unwrap_or_default();
                    let seen = Moment { at, usage };
                    served.tokens.push(at);
                    served.ids.push(token.id);
                    served.first.get_or_insert_with(|| seen.clone());
                    served.last = Some(seen);
                }
                StreamEvent::Finished(finished) => {
                    (served.times, served.drafts) = (Some(finished.times), finished.drafts);
                    ended.push(number);
                }
                StreamEvent::Failed(error) => {
                    served.failed = Some(Failed { at, error });
                    ended.push(number);
                }
                StreamEvent::Prompt(_) | StreamEvent::Scores(_) | StreamEvent::Hidden(_) => {}
            }
        }
        drop(events);
        ended.into_iter().for_each(|number| self.ended(simulation, number));
    }

    /// What became of each request.
    pub(super) fn served(self) -> Vec<Served> {
        self.served
    }
}
