//! Answers of a type: the JSON schema of the type is the grammar of the answer.

mod error;
mod schema;

#[cfg(test)]
mod tests;

use std::any::type_name;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::engine::Engine;
use crate::error::Error;
use crate::request::Request;
use crate::stream::{EndReason, Summary, TokenStream};
use crate::structured::{Grammar, GrammarError};

pub use error::TypedError;

/// An answer of a type.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Typed<T> {
    /// The value.
    pub value: T,
    /// How the generation has ended, with the text of the value and the model's thoughts.
    pub summary: Summary,
    /// Keywords of the type's schema that have no effect on the answer
    /// ([`TokenStream::ignored_keywords`](crate::TokenStream::ignored_keywords)).
    pub ignored_keywords: Vec<String>,
}

impl Engine {
    /// Answers a request with a value of type `T`. The JSON schema of the type is the grammar of the answer
    /// ([`Grammar::of`]), so the model can write nothing else; that the values make sense is up to it and to the prompt,
    /// which should say what is expected. The model may think first if its template has tags for thoughts.
    ///
    /// ```no_run
    /// use lapwing::{Engine, Request, schemars::JsonSchema};
    ///
    /// #[derive(serde::Deserialize, JsonSchema)]
    /// #[schemars(crate = "lapwing::schemars")]
    /// struct Person {
    ///     name: String,
    ///     born: u16,
    /// }
    ///
    /// # async fn example(engine: Engine) -> Result<(), lapwing::Error> {
    /// let request = Request::ask("Who discovered gravity? Answer with name and year of birth as JSON.");
    /// let answer = engine.generate_as::<Person>(request.max_tokens(100)).await?;
    /// println!("{}, born in {}", answer.value.name, answer.value.born);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// When the schema of the type cannot be a grammar, the request has a grammar or tools of its own, the answer is cut by a limit
    /// or a stop text, its text cannot be deserialised, or the generation fails.
    pub async fn generate_as<T>(&self, request: Request) -> Result<Typed<T>, TypedError>
    where
        T: JsonSchema + DeserializeOwned,
    {
        let mut stream = self.generate(asking::<T>(request)?).await.map_err(refused::<T>)?;
        while let Some(token) = stream.next().await {
            token?;
        }
        value_of(&stream)
    }

    /// As [`generate_as`](Engine::generate_as), on the calling thread, for programs without an async runtime.
    ///
    /// # Errors
    /// As [`generate_as`](Engine::generate_as).
    pub fn generate_as_blocking<T>(&self, request: Request) -> Result<Typed<T>, TypedError>
    where
        T: JsonSchema + DeserializeOwned,
    {
        let stream = self.generate_blocking(asking::<T>(request)?);
        let mut stream = stream.map_err(refused::<T>)?;
        for token in stream.blocking() {
            token?;
        }
        value_of(&stream)
    }
}

/// The request with the grammar of `T`, and with thoughts apart from the answer.
fn asking<T: JsonSchema>(request: Request) -> Result<Request, TypedError> {
    if request.grammar.is_some() {
        return Err(TypedError::HasGrammar);
    }
    if request.tools.as_ref().is_some_and(|tools| tools.may_call()) {
        return Err(TypedError::HasTools);
    }
    Ok(request.grammar(Grammar::of::<T>()).divided())
}

/// Why a request for a `T` is refused.
fn refused<T>(error: Error) -> TypedError {
    match error.grammar_error() {
        Some(source @ GrammarError::Refused { .. }) => {
            TypedError::Schema { type_name: type_name::<T>(), source: source.clone() }
        }
        _ => error.into(),
    }
}

/// The value of a stream that has ended.
fn value_of<T: DeserializeOwned>(stream: &TokenStream) -> Result<Typed<T>, TypedError> {
    let ended = stream.summary().map(|summary| (summary, summary.answer.as_ref()));
    let Some((summary, Some(answer))) = ended else {
        return Err(Error::unexpected("a generation").into());
    };
    let text = answer.text.clone();
    if summary.reason != EndReason::EndToken {
        let tokens = summary.times.generated_tokens;
        return Err(TypedError::Cut { text, reason: summary.reason.clone(), tokens });
    }
    match serde_json::from_str(&text) {
        Ok(value) => Ok(Typed {
            value,
            summary: summary.clone(),
            ignored_keywords: stream.ignored_keywords().to_vec(),
        }),
        Err(source) => Err(TypedError::NoValue { type_name: type_name::<T>(), text, source }),
    }
}
