//! The grammar of calls, as a model writes them.

use serde_json::json;

use crate::tools::{Style, ToolChoice, Tools};
use lapwing_engine::structured::{CallForm, Function, Grammar, Tag};

/// The beginning and the end of a call with tags.
const OPEN: &str = "<tool_call>\n";
const CLOSE: &str = "\n</tool_call>";
/// What begins a call with tags.
const TRIGGER: &str = "<tool_call>";

/// A text that is no call and no list of calls of a model that writes them without tags.
const NO_CALL: &str = r"(?s:\s*([^\s{\[].*)?)";

/// The grammar of an answer: the call that the choice requires; or else `message`, or a call; or else any text in which
/// calls are valid, if the client wants them checked.
pub(super) fn grammar(tools: &Tools, message: Option<Grammar>) -> Option<Grammar> {
    match (tools.requires_call(), message) {
        (true, _) => Some(call(tools.style, form(tools, false))),
        (false, Some(message)) => {
            Some(Grammar::one_of([message, call(tools.style, form(tools, false))]))
        }
        (false, None) if tools.checks_calls() => Some(free(tools)),
        (false, None) => None,
    }
}

/// Any text with valid calls.
fn free(tools: &Tools) -> Grammar {
    let form = form(tools, true);
    match tools.style {
        Style::Tagged => Grammar::tagged([Tag {
            trigger: TRIGGER.to_owned(),
            begin: OPEN.to_owned(),
            inside: Grammar::calls(form),
            end: CLOSE.to_owned(),
        }]),
        Style::Bare => Grammar::one_of([Grammar::calls(form), Grammar::regex(NO_CALL)]),
    }
}

fn call(style: Style, form: CallForm) -> Grammar {
    let call = Grammar::calls(form);
    match style {
        Style::Bare => call,
        Style::Tagged => {
            Grammar::sequence([Grammar::choice([OPEN]), call, Grammar::choice([CLOSE])])
        }
    }
}

/// The calls that the choice allows. If the model decides whether it calls a function, only strict ones are checked.
fn form(tools: &Tools, only_strict: bool) -> CallForm {
    let allowed = tools.functions.iter().filter(|function| match &tools.choice {
        ToolChoice::Auto | ToolChoice::Required => tools.allows(&function.name),
        ToolChoice::Named(name) => function.name == *name,
    });
    let functions = allowed.map(|function| Function {
        name: function.name.clone(),
        parameters: match only_strict && !function.is_strict() {
            true => Some(json!({ "type": "object" })),
            false => function.parameters.clone(),
        },
    });
    let arguments = if tools.style == Style::Bare { "parameters" } else { "arguments" };
    CallForm { functions: functions.collect(), arguments: arguments.to_owned() }
}
