//! How models write calls.

use crate::chat::ChatTemplate;

/// How a model writes calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// `<tool_call>{"name": …, "arguments": {…}}</tool_call>`, as Hermes and Qwen do.
    Tagged,
    /// The whole text is such an object, or a list of them; `parameters` may stand for `arguments`. So do
    /// Llama 3 and Mistral.
    Bare,
}

impl Style {
    /// How a model with this template writes calls. One whose template has no place for functions is told to use tags.
    pub(crate) fn of(template: Option<&ChatTemplate>) -> Style {
        match template {
            Some(template)
                if knows_tools(template) && !template.source().contains("<tool_call>") =>
            {
                Style::Bare
            }
            _ => Style::Tagged,
        }
    }
}

/// Whether the template writes functions into the prompt.
pub(super) fn knows_tools(template: &ChatTemplate) -> bool {
    template.source().contains("tools")
}
