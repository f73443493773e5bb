//! Functions that a model may call: how it is told of them, and which calls it may make.
//!
//! [`Request::tools`](crate::Request::tools) takes them. The model is told of them through its chat template, or in the system
//! message if the template has no place for them. The calls of its answer are [`Token::parts`](crate::Token::parts) and
//! [`Summary::answer`](crate::Summary::answer).
//!
//! ```no_run
//! use lapwing::{Engine, Message, Request, Tool, serde_json::json};
//!
//! # async fn example(engine: Engine) -> Result<(), lapwing::Error> {
//! let weather = Tool::new("get_weather").description("The weather of a city.").parameters(json!({
//!     "type": "object", "properties": { "city": { "type": "string" } }, "required": ["city"],
//! }));
//! let mut messages = vec![Message::user("How is the weather in Bern?")];
//! loop {
//!     let request = Request::chat(messages.clone()).tools([weather.clone()]);
//!     let answer = engine.generate(request).await?.into_answer().await?;
//!     if answer.calls.is_empty() {
//!         println!("{}", answer.text);
//!         return Ok(());
//!     }
//!     messages.push(answer.message());
//!     for call in &answer.calls {
//!         let arguments: lapwing::serde_json::Value = call.arguments_as()?;
//!         let result = format!("It rains in {}.", arguments["city"]);
//!         messages.push(Message::result(call, result));
//!     }
//! }
//! # }
//! ```

mod call;
mod grammar;
mod messages;
mod signatures;
mod split;
mod style;
mod tell;
mod tool;

#[cfg(test)]
mod tests;

use std::slice;

pub use call::{ArgumentsError, ToolCall};
pub use messages::arguments_of;
pub(crate) use signatures::{Kind, Place, Signatures};
#[cfg(test)]
pub(crate) use style::{BARE, Called, KNOWN, TAGGED};
pub(crate) use style::{Elements, Form, Literals, Named, Objects, Style, Tree, Turn};
pub use tool::Tool;

/// Whether the model has to call a function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ToolChoice {
    /// If it wants to.
    #[default]
    Auto,
    /// It calls none, and is told of none.
    None,
    /// One of them: the answer is a valid call.
    Required,
    /// This one: the answer is a valid call of it.
    Named(String),
}

/// The functions of a request, and how they may be called.
///
/// ```
/// use lapwing::{Request, Tool, ToolChoice, Tools};
///
/// let tools = Tools::new([Tool::new("roll_a_die")]).choice(ToolChoice::Required).parallel(false);
/// let request = Request::ask("Roll a die.").tools(tools);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Tools {
    functions: Vec<Tool>,
    choice: ToolChoice,
    /// Names of the functions that the model may call; `None` for all of them.
    allowed: Option<Vec<String>>,
    /// Whether an answer may have several calls.
    is_parallel: bool,
}

impl Tools {
    /// These functions. The model calls any number of them if it wants to.
    pub fn new(functions: impl IntoIterator<Item = Tool>) -> Tools {
        let functions = functions.into_iter().collect();
        Tools { functions, choice: ToolChoice::Auto, allowed: None, is_parallel: true }
    }

    /// Sets whether the model has to call one.
    #[must_use]
    pub fn choice(self, choice: ToolChoice) -> Tools {
        Tools { choice, ..self }
    }

    /// Allows calls of the functions with these names only; the model is told of all of them, so that the prompt stays the
    /// same. Calls are then always valid.
    #[must_use]
    pub fn allowed(self, names: impl IntoIterator<Item = impl Into<String>>) -> Tools {
        Tools { allowed: Some(names.into_iter().map(Into::into).collect()), ..self }
    }

    /// Sets whether an answer may have several calls; by default it may. Otherwise only the first one counts.
    #[must_use]
    pub fn parallel(self, is_parallel: bool) -> Tools {
        Tools { is_parallel, ..self }
    }

    /// With functions of these names that are [strict](Tool::strict).
    #[must_use]
    pub fn with_strict(mut self, names: &[String]) -> Tools {
        for function in &mut self.functions {
            function.is_strict |= names.contains(&function.name);
        }
        self
    }

    /// What reading calls needs to know of the functions.
    pub(crate) fn signatures(&self) -> Signatures {
        Signatures::of(&self.functions)
    }

    /// Whether an answer may have several calls.
    pub fn is_parallel(&self) -> bool {
        self.is_parallel
    }

    /// Whether the model may call a function.
    pub fn may_call(&self) -> bool {
        self.choice != ToolChoice::None
    }

    /// Whether the answer has to be a call.
    pub fn requires_call(&self) -> bool {
        matches!(self.choice, ToolChoice::Required | ToolChoice::Named(_))
    }

    /// Checks that there are the functions that the choice needs.
    ///
    /// # Errors
    /// [`ToolError::NoTool`] and [`ToolError::UnknownTool`].
    pub fn check(&self) -> Result<(), ToolError> {
        if self.functions.is_empty() && self.requires_call() {
            return Err(ToolError::NoTool);
        }
        let named = match &self.choice {
            ToolChoice::Named(name) => slice::from_ref(name),
            _ => self.allowed.as_deref().unwrap_or_default(),
        };
        let is_missing = |name: &&String| !self.functions.iter().any(|known| known.name == **name);
        match named.iter().find(is_missing) {
            Some(name) => Err(ToolError::UnknownTool { name: name.clone(), known: self.names() }),
            None => Ok(()),
        }
    }

    /// Names of the functions, for messages.
    fn names(&self) -> String {
        let names: Vec<&str> = self.functions.iter().map(|function| &*function.name).collect();
        names.join(", ")
    }
}

impl<const N: usize> From<[Tool; N]> for Tools {
    fn from(functions: [Tool; N]) -> Tools {
        Tools::new(functions)
    }
}

impl From<Vec<Tool>> for Tools {
    fn from(functions: Vec<Tool>) -> Tools {
        Tools::new(functions)
    }
}

/// Why a request cannot have its tools.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ToolError {
    /// A call is required, but there is no function.
    #[error("the tool choice requires a call, but there is no tool; add one, or choose Auto")]
    NoTool,
    /// The choice, or the list of allowed functions, names a function that there is not.
    #[error("the tool choice names the function '{name}', but the tools are: {known}")]
    UnknownTool {
        /// Its name.
        name: String,
        /// The names that there are.
        known: String,
    },
    /// The prompt is no conversation.
    #[error(
        "the prompt is text or ids, but only a conversation has tools; use Request::ask or Request::chat, or leave the tools out"
    )]
    NoConversation,
    /// The answer has to be a call, but the request has a grammar for it.
    #[error(
        "the tool choice requires a call, but the request has a grammar for the answer; leave one of them out, or choose Auto"
    )]
    CallAndGrammar,
}
