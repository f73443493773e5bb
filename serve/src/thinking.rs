//! Whether a model is to think before it answers, and how long, by the names that clients use.

use serde_json::{Map, Value};

use super::error::ApiError;
use super::fields::Fields;
use lapwing_engine::chat::{ChatTemplate, SWITCHES};
use lapwing_engine::{Request, Thoughts};

/// Efforts of `reasoning_effort` and its relatives; the first one asks for no thoughts.
const EFFORTS: [&str; 8] = ["none", "minimal", "low", "medium", "high", "xhigh", "max", "default"];

/// Names of a number of tokens that thoughts may have: those of llama.cpp, vLLM and Qwen.
const BUDGETS: [&str; 4] =
    ["thinking_budget_tokens", "thinking_token_budget", "thinking_budget", "reasoning_budget"];

/// What a client wants, each wish with the name of its field.
#[derive(Debug, Default)]
struct Wishes {
    is_on: Option<(String, bool)>,
    effort: Option<(String, String)>,
    tokens_max: Option<(String, usize)>,
    ignored: Vec<String>,
}

/// Takes the fields about thoughts, and the variables for the model's template. Returns the names of those without
/// effect, too: a template may know neither thoughts nor efforts.
///
/// # Errors
/// When a field has the wrong form.
pub(crate) fn apply(
    fields: &mut Fields,
    template: Option<&ChatTemplate>,
    mut request: Request,
) -> Result<(Request, Vec<String>), ApiError> {
    let mut wishes = Wishes::default();
    wishes.take(fields)?;
    let variables = fields.take::<Map<String, Value>>("chat_template_kwargs")?.unwrap_or_default();
    let reads = |name: &str| template.is_some_and(|template| template.reads(name));
    let has_tags = template.is_some_and(|template| template.thought_tags().is_some());
    let has_switch = SWITCHES.iter().any(|name| reads(name));
    let mut ignored = std::mem::take(&mut wishes.ignored);
    let is_on = wishes.is_on();
    if let Some((name, _)) = wishes.is_on.filter(|_| !has_tags && !has_switch) {
        ignored.push(name);
    }
    if let Some((name, effort)) = wishes.effort {
        let has_effect = match is_on {
            Some(false) => has_tags || has_switch,
            _ => has_switch || reads("reasoning_effort") || effort == "default",
        };
        ignored.extend((!has_effect).then_some(name));
        if reads("reasoning_effort") && effort != "none" && effort != "default" {
            request = request.template_variable("reasoning_effort", effort);
        }
    }
    let mut tokens_max = None;
    if let Some((name, tokens)) = wishes.tokens_max {
        tokens_max = Some(tokens);
        match has_tags {
            true if reads("thinking_budget") => {
                request = request.template_variable("thinking_budget", tokens);
            }
            true => {}
            false => ignored.push(name),
        }
    }
    for name in SWITCHES.iter().filter(|name| reads(name)) {
        request =
            is_on.into_iter().fold(request, |request, on| request.template_variable(*name, on));
    }
    let mut is_off = is_on == Some(false);
    for (name, value) in variables {
        if SWITCHES.contains(&&*name) {
            is_off = value == false;
        } else if !reads(&name) {
            ignored.push(format!("chat_template_kwargs.{name}"));
        }
        request = request.template_variable(name, value);
    }
    let thoughts = match is_off || tokens_max == Some(0) {
        true => Thoughts::None,
        false => Thoughts::First { tokens_max },
    };
    Ok((request.thoughts(thoughts), ignored))
}

impl Wishes {
    fn take(&mut self, fields: &mut Fields) -> Result<(), ApiError> {
        self.take_effort("reasoning_effort", fields.take("reasoning_effort")?)?;
        let effort = fields.take_of("output_config", "effort")?;
        self.take_effort("output_config.effort", effort)?;
        if let Some(is_on) = fields.take("enable_thinking")? {
            self.is_on = Some(("enable_thinking".to_owned(), is_on));
        }
        for name in BUDGETS {
            // A negative number stands for no limit.
            if let Some(tokens) = fields.take::<i64>(name)? {
                self.tokens_max =
                    usize::try_from(tokens).ok().map(|tokens| (name.to_owned(), tokens));
            }
        }
        self.take_think(fields)?;
        self.take_reasoning(fields)?;
        self.take_thinking(fields)
    }

    /// Whether thoughts are wanted; an effort other than `none` asks for them.
    fn is_on(&self) -> Option<bool> {
        let of_effort = self.effort.as_ref().filter(|(_, effort)| effort != "default");
        let of_effort = of_effort.map(|(_, effort)| effort != "none");
        let of_budget = self.tokens_max.as_ref().map(|(_, tokens)| *tokens > 0);
        self.is_on.as_ref().map(|(_, on)| *on).or(of_effort).or(of_budget)
    }

    /// Takes an effort.
    fn take_effort(&mut self, name: &str, effort: Option<String>) -> Result<(), ApiError> {
        let Some(effort) = effort else { return Ok(()) };
        if !EFFORTS.contains(&&*effort) {
            let message =
                format!("{name} is '{effort}', but must be one of {}", EFFORTS.join(", "));
            return Err(ApiError::field(name, message));
        }
        self.effort = Some((name.to_owned(), effort));
        Ok(())
    }

    /// Ollama's `think`: yes, no, or an effort.
    fn take_think(&mut self, fields: &mut Fields) -> Result<(), ApiError> {
        match fields.take::<Value>("think")? {
            None => Ok(()),
            Some(Value::Bool(is_on)) => {
                self.is_on = Some(("think".to_owned(), is_on));
                Ok(())
            }
            Some(Value::String(effort)) => self.take_effort("think", Some(effort)),
            Some(other) => {
                let message = format!("think is {other}, but must be true, false or an effort");
                Err(ApiError::field("think", message))
            }
        }
    }

    /// `reasoning` of OpenAI's responses and of routers.
    fn take_reasoning(&mut self, fields: &mut Fields) -> Result<(), ApiError> {
        let mut reasoning = fields.object("reasoning", "reasoning.")?;
        self.take_effort("reasoning.effort", reasoning.take("effort")?)?;
        if let Some(is_on) = reasoning.take("enabled")? {
            self.is_on = Some(("reasoning.enabled".to_owned(), is_on));
        }
        if let Some(tokens) = reasoning.take("max_tokens")? {
            self.tokens_max = Some(("reasoning.max_tokens".to_owned(), tokens));
        }
        self.ignored.extend(reasoning.rest());
        Ok(())
    }

    /// Anthropic's `thinking`.
    fn take_thinking(&mut self, fields: &mut Fields) -> Result<(), ApiError> {
        let mut thinking = fields.object("thinking", "thinking.")?;
        let Some(kind) = thinking.take::<String>("type")? else {
            self.ignored.extend(thinking.rest());
            return Ok(());
        };
        let is_on = match &*kind {
            "enabled" => Some(true),
            "disabled" => Some(false),
            // The model decides.
            "adaptive" => None,
            _ => {
                let message =
                    format!("thinking.type is '{kind}', but must be enabled, disabled or adaptive");
                return Err(ApiError::field("thinking.type", message));
            }
        };
        if let Some(is_on) = is_on {
            self.is_on = Some(("thinking".to_owned(), is_on));
            if let Some(tokens) = thinking.take("budget_tokens")? {
                self.tokens_max = Some(("thinking.budget_tokens".to_owned(), tokens));
            }
        }
        self.ignored.extend(thinking.rest());
        Ok(())
    }
}
