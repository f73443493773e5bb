//! The end of a prompt whose last message the model continues.

use super::marks::Input;
use super::{ChatError, ChatOptions, ChatTemplate, Message, call_ids, thought_fields};

/// Follows the text of the last message, so that its end is found in the prompt. No text has this character. A space
/// after it shows whether the template trims the message.
const END: &str = "\u{10FFFE} ";

/// Marks the end of the message that is to be continued.
///
/// # Errors
/// When there is no message, or it ends with calls of functions.
fn mark(messages: &mut [Message]) -> Result<(), ChatError> {
    let Some(last) = messages.last_mut() else {
        return Err(ChatError::NotContinued { reason: "there is none" });
    };
    if last.fields.contains_key("tool_calls") {
        return Err(ChatError::NotContinued { reason: "it has calls of functions" });
    }
    last.content.push_str(END);
    Ok(())
}

/// Where the prompt ends that was rendered from marked messages; `message` is the text of the last one, without
/// the mark. White space at its end that the template trims is not in the prompt.
///
/// # Errors
/// When the template has left the message out.
fn end(prompt: &str, message: &str) -> Result<usize, ChatError> {
    let missing = ChatError::NotContinued { reason: "the template leaves it out" };
    let at = prompt.rfind(END.trim_end()).ok_or(missing)?;
    if prompt[at..].starts_with(END) {
        return Ok(at);
    }
    let space = &message[message.trim_end().len()..];
    Ok(prompt[..at].strip_suffix(space).unwrap_or(&prompt[..at]).len())
}

impl ChatTemplate {
    /// The input of the template and the text that it makes of it, without the end of a message that is continued
    /// taken off. A template that refuses a conversation gets it once more with ids of calls that all accept, and without text beside
    /// thoughts and calls; one that fails, with the arguments of calls as text.
    pub(super) fn accepted(
        &self,
        messages: &[Message],
        options: &ChatOptions,
    ) -> Result<(Input, String), ChatError> {
        let named = thought_fields::named(messages, &self.source);
        let mut input = Input::new(named.as_deref().unwrap_or(messages), options);
        if options.continue_final_message {
            mark(&mut input.messages)?;
        }
        let refusal = match self.render_input(&input, options) {
            Err(refusal @ ChatError::Refused { .. }) => refusal,
            Err(failure @ ChatError::Failed { .. }) => {
                return self.accepted_with_text(input, options, failure);
            }
            rendered => return rendered.map(|text| (input, text)),
        };
        for change in [call_ids::shortened, thought_fields::without_text] {
            let Some(messages) = change(&input.messages) else { continue };
            let input = Input { messages, variables: input.variables.clone() };
            if let Ok(text) = self.render_input(&input, options) {
                return Ok((input, text));
            }
        }
        Err(refusal)
    }

    /// As [`accepted`](Self::accepted), after a failure: some templates expect the arguments of calls as text.
    fn accepted_with_text(
        &self,
        input: Input,
        options: &ChatOptions,
        failure: ChatError,
    ) -> Result<(Input, String), ChatError> {
        let Some(messages) = call_ids::with_text(&input.messages) else { return Err(failure) };
        let input = Input { messages, ..input };
        let text = self.render_input(&input, options).map_err(|_| failure)?;
        Ok((input, text))
    }

    /// Where the prompt ends in the text that [`accepted`](Self::accepted) returns.
    pub(super) fn end_of(
        &self,
        text: &str,
        messages: &[Message],
        options: &ChatOptions,
    ) -> Result<usize, ChatError> {
        match messages.last() {
            Some(last) if options.continue_final_message => end(text, &last.content),
            _ => Ok(text.len()),
        }
    }
}
