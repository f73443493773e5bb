//! When `run` begins a conversation.

use std::io::{IsTerminal, stdin};

use super::Args;
use super::asked::Asked;
use crate::cli::session::Session;
use crate::commands::chat;

impl Args {
    /// Whether to talk instead of answering once: there is no prompt, and a person can type one.
    pub(super) fn is_conversation(&self, asked: &Asked, session: &Session) -> bool {
        let is_once = self.raw || self.watch || self.trace.trace.is_some() || session.json;
        let has_prompt = asked.prompt.is_some() || asked.stdin || self.file.is_some();
        self.conversation || (!is_once && !has_prompt && stdin().is_terminal())
    }

    /// The chat that begins, with its first message.
    pub(super) fn conversation(self, model: String, first: Option<String>) -> chat::Args {
        chat::Args::of(chat::Start {
            model,
            first,
            system: self.system,
            stats: self.stats,
            sampling: self.sampling,
            engine: self.engine,
            prefix: self.prefix,
        })
    }
}
