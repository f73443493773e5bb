//! Requests that workers have, and what the router is to be told of them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lapwing_traces::{Nanos, RequestTimes};

use super::{OnServed, WorkerServed};
use crate::error::RunError;
use crate::message::{Sink, StreamEvent, Traced};
use crate::policy::ClientId;
use crate::prefix::DroppedText;
use crate::routing::{RoutePolicy, SentRequest, WorkerId, Workers};
use crate::simulate::arrival::Arrival;

/// Receives the events of all requests.
#[derive(Debug, Default)]
struct Inbox(Mutex<Vec<(usize, StreamEvent)>>);

impl Inbox {
    fn events(&self) -> MutexGuard<'_, Vec<(usize, StreamEvent)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The stream of one request.
#[derive(Debug)]
struct Stream {
    place: usize,
    inbox: Arc<Inbox>,
}

impl Sink for Stream {
    fn send(&self, event: Traced<StreamEvent>) {
        self.inbox.events().push((self.place, event.message));
    }

    fn is_closed(&self) -> bool {
        false
    }

    fn may_close(&self) -> bool {
        false
    }
}

/// Requests that have not ended, or whose end the router does not know.
#[derive(Debug, Default)]
pub(super) struct InFlight {
    inbox: Arc<Inbox>,
    requests: Vec<Option<Request>>,
    /// Unused places of `requests`.
    vacant: Vec<usize>,
    notices: Vec<Notice>,
    drops: Vec<(WorkerId, DroppedText)>,
}

#[derive(Debug)]
struct Request {
    number: usize,
    worker: WorkerId,
    client: ClientId,
    prompt_tokens: usize,
    sent: Nanos,
    tokens: Vec<Nanos>,
    times: Option<RequestTimes>,
    failed: Option<RunError>,
}

/// What the router does not know yet.
#[derive(Clone, Copy, Debug)]
struct Notice {
    at: Nanos,
    place: usize,
    is_end: bool,
}

impl Request {
    fn as_sent(&self, is_end: bool) -> SentRequest<'_> {
        SentRequest {
            number: self.number as u64,
            client: &self.client,
            worker: self.worker,
            prompt_tokens: self.prompt_tokens,
            generated_tokens: if is_end { self.tokens.len() } else { 1 },
            sent: self.sent,
            first_token: self.tokens.first().copied(),
        }
    }

    fn into_served(self) -> WorkerServed {
        let Request { worker, tokens, times, failed, .. } = self;
        WorkerServed { worker, tokens, times, failed }
    }
}

impl InFlight {
    /// A request of that number is sent to that worker. Returns where its events go.
    pub(super) fn begin(&mut self, to: (usize, WorkerId), arrival: &Arrival) -> Arc<dyn Sink> {
        let request = Request {
            number: to.0,
            worker: to.1,
            client: arrival.client.clone(),
            prompt_tokens: arrival.ids.len(),
            sent: arrival.at,
            tokens: Vec::with_capacity(arrival.tokens),
            times: None,
            failed: None,
        };
        let place = self.vacant.pop().unwrap_or(self.requests.len());
        match self.requests.get_mut(place) {
            Some(vacant) => *vacant = Some(request),
            None => self.requests.push(Some(request)),
        }
        Arc::new(Stream { place, inbox: Arc::clone(&self.inbox) })
    }

    /// Takes the events that have come at a time.
    pub(super) fn look(&mut self, at: Nanos) {
        for (place, event) in self.inbox.events().drain(..) {
            let Some(request) = &mut self.requests[place] else { continue };
            match event {
                StreamEvent::Token(_) => {
                    if request.tokens.is_empty() {
                        self.notices.push(Notice { at, place, is_end: false });
                    }
                    request.tokens.push(at);
                    continue;
                }
                StreamEvent::Finished(finished) => request.times = Some(finished.times),
                StreamEvent::Failed(error) => request.failed = Some(error),
                StreamEvent::Prompt(_) | StreamEvent::Scores(_) | StreamEvent::Hidden(_) => {
                    continue;
                }
            }
            self.notices.push(Notice { at, place, is_end: true });
        }
    }

    /// A worker's prefix cache has dropped texts.
    pub(super) fn on_drops(&mut self, worker: usize, texts: Vec<DroppedText>) {
        let worker = WorkerId(worker as u32);
        self.drops.extend(texts.into_iter().map(|text| (worker, text)));
    }

    /// Tells the router what it does not know yet, in the order of time.
    pub(super) fn tell(
        &mut self,
        workers: &mut Workers,
        policy: &mut dyn RoutePolicy,
        served: OnServed<'_>,
    ) {
        self.notices.sort_by_key(|notice| notice.at);
        for Notice { at, place, is_end } in self.notices.drain(..) {
            let Some(request) = &self.requests[place] else { continue };
            let Request { worker, prompt_tokens, .. } = *request;
            if !is_end {
                workers.on_first_token(worker, prompt_tokens);
                policy.first_token(&request.as_sent(false), at);
                continue;
            }
            workers.on_end(worker, prompt_tokens, !request.tokens.is_empty());
            policy.finish(&request.as_sent(true), at);
            if let Some(request) = self.requests[place].take() {
                self.vacant.push(place);
                served(request.number, request.into_served());
            }
        }
        for (worker, DroppedText { tokens, kept }) in self.drops.drain(..) {
            policy.evicted(worker, &tokens, kept);
        }
    }

    /// What became of the requests that have not ended.
    pub(super) fn end(&mut self, served: OnServed<'_>) {
        for request in self.requests.drain(..).flatten() {
            served(request.number, request.into_served());
        }
    }
}
