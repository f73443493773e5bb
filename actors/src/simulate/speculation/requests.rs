//! The requests of a simulated run.

use lapwing_kernels::device::ModelId;
use lapwing_traces::Nanos;

use super::Speculation;
use crate::draft::{DraftStats, Drafts};
use crate::drive::mailbox::ChannelSink;
use crate::drive::simulated::Simulation;
use crate::message::{Generate, SchedulerMessage, StreamEvent, Submit, Task, Traced};
use crate::policy::{ClientId, Urgency};
use crate::prefix::PrefixUse;
use crate::sample::{Sampler, SamplingParams};
use crate::sequence::AdmissionLimit;
use crate::simulate::error::SocRunError;

type Events = flume::Receiver<Traced<StreamEvent>>;

impl Speculation {
    /// Sends all requests, and runs until they have ended. Returns the time of all tokens but the first one, and counts of
    /// the drafts.
    pub(super) fn generate(
        &self,
        simulation: &mut Simulation,
        drafts: Option<&dyn Fn() -> Drafts>,
    ) -> Result<(Nanos, DraftStats), SocRunError> {
        let limit = AdmissionLimit::new(self.requests);
        let mut streams: Vec<Events> = (0..self.requests)
            .map(|_| self.submit(simulation, &limit, drafts.map(|drafts| drafts())))
            .collect();
        let (mut first, mut last, mut stats) = (None, Nanos(0), DraftStats::default());
        while simulation.step() {
            let at = simulation.now();
            let mut failed = None;
            streams.retain(|events| {
                for event in events.try_iter() {
                    match event.message {
                        StreamEvent::Token(_) => {
                            first.get_or_insert(at);
                            last = at;
                        }
                        StreamEvent::Finished(finished) => {
                            stats.add(&finished.drafts.unwrap_or_default());
                            return false;
                        }
                        StreamEvent::Failed(error) => failed = Some(error),
                        StreamEvent::Prompt(_)
                        | StreamEvent::Scores(_)
                        | StreamEvent::Hidden(_) => {}
                    }
                }
                true
            });
            if let Some(error) = failed {
                return Err(SocRunError::Failed { at, error });
            }
            if streams.is_empty() {
                return Ok((Nanos(last.0 - first.unwrap_or(last).0), stats));
            }
        }
        let scheduler = simulation.scheduler();
        let (sequences, chunks) = (scheduler.sequences(), scheduler.chunks_in_flight());
        Err(SocRunError::Stuck { sequences, chunks })
    }

    fn submit(
        &self,
        simulation: &mut Simulation,
        limit: &AdmissionLimit,
        drafts: Option<Drafts>,
    ) -> Events {
        let (sink, events) = ChannelSink::new(self.tokens + 2);
        let generate = Generate {
            sampler: Sampler::new(SamplingParams::greedy(), &[]),
            stop_ids: [].into(),
            tokens_max: self.tokens,
            drafts: drafts.map(Box::new),
        };
        let Some(admission) = limit.try_take() else { unreachable!("a permit for each request") };
        let submit = Submit {
            model: ModelId(0),
            ids: vec![0; self.prompt],
            task: Task::Generate(Box::new(generate)),
            client: ClientId::anonymous(),
            urgency: Urgency::default(),
            prefix: PrefixUse::Off,
            sink,
            admission,
            trace: tracing::Span::none(),
        };
        simulation.send_at(Nanos(0), SchedulerMessage::Submit(Box::new(submit)));
        events
    }
}
