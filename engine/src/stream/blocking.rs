//! Tokens that are waited for on the calling thread.

use lapwing_actors::message::StreamEvent;

use super::{Token, TokenStream};
use crate::error::Error;

/// The tokens of a [`TokenStream`], waited for on the calling thread
/// ([`TokenStream::blocking`]). Dropping the iterator leaves the rest in the stream.
#[derive(Debug)]
pub struct BlockingTokens<'a> {
    pub(super) stream: &'a mut TokenStream,
}

impl Iterator for BlockingTokens<'_> {
    type Item = Result<Token, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let events = self.stream.events.as_mut()?;
            let held = self.stream.reports.take_held();
            match held.unwrap_or_else(|| events.next_blocking()) {
                StreamEvent::Prompt(_) => {}
                event => return self.stream.on_event(event),
            }
        }
    }
}
