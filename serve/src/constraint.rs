//! The form that a request asks for: JSON, a grammar, or a call of a function.

mod alone;
mod formats;
mod tags;
mod text;

use super::error::ApiError;
use super::fields::Fields;
use lapwing_engine::Request;
use lapwing_engine::chat::ChatTemplate;
use lapwing_engine::tools::Tools;

pub use alone::structured_outputs;
pub(crate) use formats::of_ollama;

/// Sets the form of the answer as the fields say: `response_format` and its relatives of vLLM's, llama.cpp's and
/// Anthropic's servers, and the functions, which a model with this template calls.
///
/// # Errors
/// When a field has the wrong form, or two of them contradict each other.
pub(crate) fn apply(
    fields: &mut Fields,
    tools: Option<&Tools>,
    template: Option<&ChatTemplate>,
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
        (Some(tools), asked) => tools.grammar(asked.map(|asked| asked.grammar), template),
        (None, asked) => asked.map(|asked| match asked.is_of_message {
            true => Tools::message(asked.grammar, template),
            false => asked.grammar,
        }),
    };
    Ok(grammar.into_iter().fold(request, Request::grammar))
}
