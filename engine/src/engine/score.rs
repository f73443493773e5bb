//! Log-probabilities of a text.

use lapwing_actors::drive::live::LiveRequest;
use lapwing_actors::message::{StreamEvent, Task};
use lapwing_actors::policy::{ClientId, Urgency};
use lapwing_actors::prefix::PrefixUse;
use lapwing_actors::sample::Scored;
use lapwing_kernels::device::ModelId;

use super::Engine;
use crate::error::Error;
use crate::span::RequestSpan;

impl Engine {
    /// Natural log-probability of each of `ids` from position `from` on (at least 1), given all ids
    /// before it: `ids.len() − from` values.
    ///
    /// # Errors
    /// When the ids exceed the context or the vocabulary, or the engine fails.
    pub async fn score(&self, ids: Vec<u32>, from: usize) -> Result<Vec<f32>, Error> {
        let scored = self.score_top(ids, from, 0).await?;
        Ok(scored.into_iter().map(|scored| scored.logprob).collect())
    }

    /// As [`score`](Engine::score), with the `top` most likely tokens at each position, most likely first, and
    /// their log-probabilities.
    ///
    /// # Errors
    /// As [`score`](Engine::score).
    pub async fn score_top(
        &self,
        ids: Vec<u32>,
        from: usize,
        top: usize,
    ) -> Result<Vec<Scored>, Error> {
        let span = RequestSpan::of_scores(&self.inner.path);
        let chunks = ids.len() / self.inner.chunk_rows.max(1) + ids.len();
        let live = &self.inner.live;
        let request = LiveRequest {
            ids,
            task: Task::Score { from, top },
            client: ClientId::anonymous(),
            urgency: Urgency::default(),
            prefix: PrefixUse::default(),
            events: chunks,
            prompt_progress: false,
            model: ModelId::default(),
            traced: false,
            trace: span.handle(),
        };
        let submitted = live.admit().and_then(|admission| live.submit(admission, request));
        let (mut events, mut span) = span.with(submitted.map_err(Error::from))?;
        let mut scores = Vec::new();
        loop {
            match events.next().await {
                StreamEvent::Scores(more) => scores.extend(more),
                StreamEvent::Finished(finished) => {
                    span.end("scored", &finished.times);
                    return Ok(scores);
                }
                StreamEvent::Failed(error) => return Err(span.fail(error.into())),
                StreamEvent::Prompt(_) | StreamEvent::Token(_) | StreamEvent::Hidden(_) => {
                    return Err(span.fail(Error::unexpected("a request for scores")));
                }
            }
        }
    }
}
