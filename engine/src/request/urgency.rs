//! Who sends a request, and how urgent it is.

use std::time::Duration;

use lapwing_actors::policy::Urgency;

use super::Request;

impl Request {
    /// Names the client that sends the request: queue policies may treat clients apart
    /// ([`EngineBuilder::policy`](crate::EngineBuilder::policy)).
    #[must_use]
    pub fn client(mut self, name: impl Into<String>) -> Request {
        self.client = Some(name.into());
        self
    }

    /// Sets its priority for queue policies that ask, such as `edf`: the greater number goes first. The default is 0. Below 0,
    /// it is background work whatever the policy ([`background`](Request::background)).
    #[must_use]
    pub fn priority(mut self, priority: i32) -> Request {
        self.urgency.priority = priority;
        self
    }

    /// Makes it background work: it gives way to other requests, and its place to those that arrive. None of its rows is computed
    /// beside prompt rows of others, and its own prompt is computed in short chunks. Its priority is −1. In each 10 seconds,
    /// one that has had no rows for so long has a turn until its next token.
    #[must_use]
    pub fn background(self) -> Request {
        self.priority(Urgency::BACKGROUND.priority)
    }

    /// Sets the longest time that it is to wait for a token after the last one, while the prompts of other requests are
    /// computed; it takes the place of the engine's ([`EngineBuilder::token_gap`](crate::EngineBuilder::token_gap)). A target
    /// that cannot be kept, since even a chunk of 16 rows takes longer, does not end a request.
    #[must_use]
    pub fn token_gap(mut self, gap: Duration) -> Request {
        self.urgency.token_gap = Some(gap);
        self
    }

    /// Sets the time from now at which its last token is due, for queue policies that ask, such as `edf`. A missed
    /// deadline does not end the request.
    #[must_use]
    pub fn deadline(mut self, after: Duration) -> Request {
        self.urgency.deadline = Some(after);
        self
    }
}
