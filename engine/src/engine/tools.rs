//! Requests with tools, and with answers that are divided into parts.

use std::borrow::Cow;

use super::Engine;
use crate::parts::AnswerForm;
use crate::request::{Prompt, Request, Thoughts};
use crate::tools::{ToolError, Tools};

impl Engine {
    /// The request with its tools in its prompt and in its grammar, and the form of its answer, if that is divided.
    pub(super) fn with_tools(
        &self,
        mut request: Request,
    ) -> Result<(Request, Option<AnswerForm>), ToolError> {
        let tools = request.tools.take();
        if tools.is_none() && !request.divided {
            return Ok((request, None));
        }
        if !matches!(request.prompt, Prompt::Chat(_)) {
            return match tools {
                Some(_) => Err(ToolError::NoConversation),
                None => Ok((request, Some(AnswerForm::default()))),
            };
        }
        let template = self.chat_template();
        let form = AnswerForm::new(tools.as_ref(), template);
        if let Some(tools) = tools {
            tools.check()?;
            if tools.requires_call() && request.grammar.is_some() {
                return Err(ToolError::CallAndGrammar);
            }
            request.grammar = tools.grammar(request.grammar.take(), template);
            request = tools.tell(request, template);
        } else {
            let grammar = request.grammar.take();
            request.grammar = grammar.map(|grammar| Tools::message(grammar, template));
        }
        if request.thoughts == Thoughts::Text {
            request.thoughts = Thoughts::First { tokens_max: None };
        }
        Ok((form.shown(request), Some(form)))
    }

    /// The request as its prompt is made.
    pub(super) fn told<'a>(&self, request: &'a Request) -> Result<Cow<'a, Request>, ToolError> {
        Ok(match request.tools {
            Some(_) => Cow::Owned(self.with_tools(request.clone())?.0),
            None => Cow::Borrowed(request),
        })
    }
}
