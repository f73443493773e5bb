//! Renders conversations to prompts with the chat template of the weight file.
//!
//! Templates are Jinja programs written for Python. They behave here as they do there: block tags
//! leave no blank lines, strings have Python's methods, and `raise_exception` becomes
//! [`ChatError::Refused`].
//!
//! What a message contains is text: [`ChatTemplate::encode`] reads the template's own control tokens
//! as such, and those written in a message as ordinary text.

mod arguments;
mod call_ids;
mod checked;
mod date;
mod ending;
mod environment;
mod error;
mod fault;
mod filters;
mod globals;
mod json;
mod marks;
mod message;
mod metadata;
mod meter;
mod names;
mod python;
mod rules;
#[cfg(feature = "structured")]
mod shows;
mod thought_fields;
mod thoughts;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::OnceLock;

use minijinja::value::Serde;
use minijinja::{Environment, Value, context};

pub use error::ChatError;
pub use fault::ChatFault;

pub use call_ids::short_id;
pub use message::{ChatOptions, Message};
pub(crate) use metadata::SPECIALS;
#[cfg(feature = "structured")]
pub(crate) use shows::Shows;
pub use thoughts::AnswerStart;
#[cfg(feature = "structured")]
pub use thoughts::{SWITCHES, ThoughtTags};

use crate::tokenizer::Tokenizer;
use checked::Checked;
use marks::{Input, Marks, Rendered, telling_chars};
use meter::{Limits, Meter};
use names::NAME;

/// A chat template, compiled when it is first used.
///
/// A template is a program from an untrusted file: its size, its time and its memory are limited, far
/// beyond what the templates of published models need.
#[derive(Debug)]
pub struct ChatTemplate {
    compiled: OnceLock<Compiled>,
    source: String,
    /// Special tokens by the names of their variables, such as `bos_token`.
    specials: BTreeMap<&'static str, String>,
    #[cfg(feature = "structured")]
    shows: OnceLock<Shows>,
}

/// A template that was checked and compiled.
#[derive(Debug)]
struct Compiled {
    environment: Environment<'static>,
    checked: Checked,
    /// Names that it reads and does not define.
    names: HashSet<String>,
}

impl ChatTemplate {
    /// The template `source`; `bos` and `eos` are the texts of the begin and end tokens.
    pub fn new(source: &str, bos: &str, eos: &str) -> Self {
        let specials = BTreeMap::from([("bos_token", bos.into()), ("eos_token", eos.into())]);
        Self {
            compiled: OnceLock::new(),
            source: source.into(),
            specials,
            #[cfg(feature = "structured")]
            shows: OnceLock::new(),
        }
    }

    /// The template `source` with the begin and end tokens of `tokenizer`.
    pub fn for_tokenizer(source: &str, tokenizer: &Tokenizer) -> Self {
        let text = |id: Option<u32>| id.and_then(|id| tokenizer.token_text(id)).unwrap_or_default();
        Self::new(source, text(tokenizer.bos()), text(tokenizer.eos()))
    }

    /// Compiles the template, unless that was done.
    fn compiled(&self) -> Result<&Compiled, ChatError> {
        if let Some(compiled) = self.compiled.get() {
            return Ok(compiled);
        }
        let checked = rules::check(&self.source)?;
        let mut environment = environment::like_python()?;
        environment.add_template_owned(NAME, checked.source.clone()).map_err(ChatError::invalid)?;
        let template = environment.get_template(NAME).map_err(ChatError::invalid)?;
        let names = template.undeclared_variables(false);
        Ok(self.compiled.get_or_init(|| Compiled { environment, checked, names }))
    }

    /// The token ids of the prompt for `messages`, in order.
    ///
    /// A control token written in a message, such as `<|im_end|>`, is encoded as ordinary text, also in
    /// roles and in the strings of variables. Tokens that the vocabulary calls user-defined, such as
    /// `<think>`, are matched everywhere.
    ///
    /// # Errors
    /// If the template rejects the conversation or fails on it, or if a message contains a control
    /// token and the template looks into messages so that it cannot be told from the template's own.
    pub fn encode(
        &self,
        messages: &[Message],
        options: &ChatOptions,
        tokenizer: &Tokenizer,
    ) -> Result<Vec<u32>, ChatError> {
        Ok(self.rendered(messages, options, tokenizer)?.ids(tokenizer))
    }

    /// The prompt, with the positions of characters that come from messages.
    pub(crate) fn rendered(
        &self,
        messages: &[Message],
        options: &ChatOptions,
        tokenizer: &Tokenizer,
    ) -> Result<Rendered, ChatError> {
        let options = &dated(options);
        let (input, text) = self.accepted(messages, options)?;
        let end = self.end_of(&text, messages, options)?;
        let all = telling_chars(tokenizer, &self.compiled()?.checked.literals, &input);
        if input.texts().iter().all(|text| !text.contains(|char| all.contains(&char))) {
            return Ok(Rendered { text, foreign: Vec::new() }.cut(end));
        }
        // A template that searches messages for one of the characters takes other branches if it has
        // a stand-in. Then only whole control tokens are marked.
        let whole = |text: &str| tokenizer.control_positions(text);
        let starts: BTreeSet<char> = input
            .texts()
            .into_iter()
            .flat_map(|text| whole(text).into_iter().filter_map(|at| text[at..].chars().next()))
            .collect();
        for (chars, only_whole) in [(all, false), (starts, true)] {
            let Some(marks) = Marks::new(&chars, &input, &self.source) else { continue };
            let marked = match only_whole {
                false => input.map(&|text| marks.mark(text)),
                true => input.map(&|text| marks.mark_at(text, &whole(text))),
            };
            let prompt = self.render_input(&marked, options).map(|prompt| marks.read(&prompt));
            if let Ok(prompt) = prompt
                && prompt.text == text
            {
                return Ok(prompt.cut(end));
            }
        }
        let texts = input.texts();
        let token = texts.iter().find_map(|text| {
            let at = *whole(text).first()?;
            tokenizer.control_texts().find(|token| text[at..].starts_with(token))
        });
        Err(ChatError::ControlToken { token: token.unwrap_or_default().to_owned() })
    }

    /// The text of the prompt for `messages`, in order, to be shown. Control tokens written in messages
    /// cannot be told from those of the template in it; [`encode`](Self::encode) does.
    ///
    /// # Errors
    /// If the template rejects the conversation or fails on it.
    pub fn render(
        &self,
        messages: &[Message],
        add_generation_prompt: bool,
    ) -> Result<String, ChatError> {
        self.render_with(messages, &ChatOptions { add_generation_prompt, ..ChatOptions::default() })
    }

    /// [`render`](Self::render) with all options.
    ///
    /// # Errors
    /// If the template rejects the conversation or fails on it.
    pub fn render_with(
        &self,
        messages: &[Message],
        options: &ChatOptions,
    ) -> Result<String, ChatError> {
        let options = &dated(options);
        let (_, mut text) = self.accepted(messages, options)?;
        text.truncate(self.end_of(&text, messages, options)?);
        Ok(text)
    }

    fn render_input(&self, input: &Input, options: &ChatOptions) -> Result<String, ChatError> {
        let compiled = self.compiled()?;
        let limits = Limits::new(&compiled.checked, input);
        let meter = Meter::new(limits, input);
        let fixed = context! {
            lapwing_meter => Value::from_object(meter),
            messages => Serde(&input.messages),
            add_generation_prompt => options.add_generation_prompt && !options.continue_final_message,
            tools => Value::from(()),
            documents => Value::from(()),
        };
        let date = match options.now.map(date::function) {
            Some(date) => context! { strftime_now => date },
            None => context! {},
        };
        let reads = |name: &str| compiled.names.contains(name);
        let datetime = options.now.filter(|_| reads("datetime")).and_then(date::variable);
        let date = match datetime {
            Some(datetime) => context! { datetime, ..date },
            None => date,
        };
        // A template adds the functions to a text, also where there are none.
        let functions = match reads("functions") {
            true => context! { functions => "" },
            false => context! {},
        };
        let specials = Value::from(Serde(&self.specials));
        let variables = Value::from(Serde(&input.variables));
        let mut environment = compiled.environment.clone();
        environment.set_fuel(Some(limits.fuel));
        environment
            .get_template(NAME)
            .and_then(|template| {
                template.render(context! { ..variables, ..date, ..specials, ..fixed, ..functions })
            })
            .map_err(ChatError::failed)
    }

    /// Compiles the template, which otherwise happens when it is first used.
    ///
    /// # Errors
    /// If it does not compile, or uses what is not supported.
    pub fn check(&self) -> Result<(), ChatError> {
        self.compiled().map(drop)
    }

    /// The template's source, as stored in the file.
    pub fn source(&self) -> &str {
        &self.source
    }
}

/// The same options with a time, so that all renderings of a prompt have the same.
fn dated(options: &ChatOptions) -> ChatOptions {
    let now = options.now.unwrap_or_else(|| jiff::Timestamp::now().into());
    ChatOptions { now: Some(now), ..options.clone() }
}
