//! The form that a request asks for: JSON, a grammar, or a call of a function.

mod calls;
mod formats;
mod tags;
mod text;

use super::error::ApiError;
use super::fields::Fields;
use super::tools::Tools;
use lapwing_engine::Request;
use lapwing_engine::structured::Grammar;

pub(crate) use formats::of_ollama;

/// Sets the form of the answer as the fields say: `response_format` and its relatives of vLLM's, llama.cpp's and
/// Anthropic's servers, and the functions.
///
/// # Errors
/// When a field has the wrong form, or two of them contradict each other.
pub(crate) fn apply(
    fields: &mut Fields,
    tools: Option<&Tools>,
    mut request: Request,
) -> Result<Request, ApiError> {
    if let Some(tokens) = fields.take::<usize>("min_tokens")? {
        request = request.min_tokens(tokens);
    }
    let mut asked = formats::take(fields)?;
    if let [first, second, ..] = &asked[..] {
        let message = format!("{} and {} exclude each other", first.field, second.field);
        return Err(ApiError::field(&first.field, message));
    }
    let grammar = match (tools, asked.pop()) {
        (Some(tools), Some(asked)) if !asked.is_of_message => {
            if tools.requires_call() {
                let message = format!("{} and tool_choice exclude each other", asked.field);
                return Err(ApiError::field(&asked.field, message));
            }
            Some(asked.grammar)
        }
        (Some(tools), asked) => calls::grammar(tools, asked.map(|asked| asked.grammar)),
        (None, asked) => asked.map(|asked| asked.grammar),
    };
    Ok(grammar.into_iter().fold(request, Request::grammar))
}

/// The grammar of an answer of which only the calls are to be valid.
pub(crate) fn calls(tools: Option<&Tools>) -> Option<Grammar> {
    tools.and_then(|tools| calls::grammar(tools, None))
}
