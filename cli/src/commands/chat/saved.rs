//! Conversations in files.

use std::path::Path;

use lapwing_engine::Message;
use serde::{Deserialize, Serialize};

use crate::cli::failure::Failure;
use crate::cli::files;
use crate::cli::session::Session;

/// The only value of `version`.
const VERSION: u32 = 1;
/// What to do about a file that is not a conversation.
const HINT: &str = "/load reads files that /save has written";

/// Instructions and messages of a conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Saved {
    /// Instructions to the model.
    pub(super) system: Option<String>,
    /// Questions and answers in turn, beginning with a question.
    pub(super) messages: Vec<Message>,
}

/// The form of the file.
#[derive(Debug, Serialize, Deserialize)]
struct Form {
    version: u32,
    #[serde(default)]
    system: Option<String>,
    messages: Vec<FormMessage>,
}

#[derive(Debug, Serialize, Deserialize)]
struct FormMessage {
    role: String,
    content: String,
}

/// Why a text is not a conversation.
#[derive(Debug, thiserror::Error)]
enum SavedError {
    #[error("is not a saved conversation: {0}")]
    Json(#[from] serde_json::Error),
    #[error("has version {found}; this program reads version {VERSION}")]
    Version { found: u32 },
    #[error(
        "is not a saved conversation: message {number} has the role '{found}' instead of '{expected}'"
    )]
    Role { number: usize, found: String, expected: &'static str },
    #[error("is not a saved conversation: its last question has no answer")]
    Unanswered,
}

impl Saved {
    /// Writes the file; an existing one stays until the new one is complete.
    pub(super) fn write(&self, path: &Path, session: &Session) -> Result<(), Failure> {
        let message =
            |m: &Message| FormMessage { role: m.role.clone(), content: m.content.clone() };
        let messages = self.messages.iter().map(message).collect();
        let form = Form { version: VERSION, system: self.system.clone(), messages };
        let mut bytes = serde_json::to_vec_pretty(&form)
            .map_err(|error| Failure::failed(format!("cannot write JSON: {error}")))?;
        bytes.push(b'\n');
        files::write(path, &bytes, session)
    }

    /// Reads a file.
    pub(super) fn read(path: &Path) -> Result<Saved, Failure> {
        let bytes = std::fs::read(path)
            .map_err(|error| Failure::file("read the conversation", path, &error))?;
        Saved::parse(&bytes)
            .map_err(|error| Failure::failed(format!("{} {error}", path.display())).hint(HINT))
    }

    fn parse(bytes: &[u8]) -> Result<Saved, SavedError> {
        let form: Form = serde_json::from_slice(bytes)?;
        if form.version != VERSION {
            return Err(SavedError::Version { found: form.version });
        }
        let roles = ["user", "assistant"].into_iter().cycle();
        for (at, (message, expected)) in form.messages.iter().zip(roles).enumerate() {
            if message.role != expected {
                let (number, found) = (at + 1, message.role.clone());
                return Err(SavedError::Role { number, found, expected });
            }
        }
        if form.messages.len() % 2 == 1 {
            return Err(SavedError::Unanswered);
        }
        let messages = form.messages.into_iter().map(|m| Message::new(m.role, m.content)).collect();
        Ok(Saved { system: form.system, messages })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_file_is_refused_with_the_reason() {
        let user = r#"{"role":"user","content":"a"}"#;
        let form = |messages: &str| format!(r#"{{"version":1,"messages":[{messages}]}}"#);
        let rows = [
            (String::new(), "EOF"),
            ("not JSON".to_owned(), "line 1 column"),
            ("{}".to_owned(), "missing field"),
            (r#"{"version":1}"#.to_owned(), "missing field `messages`"),
            (r#"{"version":2,"messages":[]}"#.to_owned(), "has version 2"),
            (form(r#"{"role":"user"}"#), "missing field `content`"),
            (form(r#"{"role":"assistant","content":""}"#), "message 1 has the role 'assistant'"),
            (form(&format!("{user},{user}")), "message 2 has the role 'user'"),
            (form(user), "its last question has no answer"),
            (form(user)[..20].to_owned(), "EOF"),
        ];
        for (text, reason) in rows {
            let error = Saved::parse(text.as_bytes()).expect_err(&text).to_string();
            assert!(error.contains(reason), "{text}: {error}");
        }
        assert!(Saved::parse(b"{\"version\":1,\"messages\":[\"\xff\"]}").is_err());
    }
}
