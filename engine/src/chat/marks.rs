//! Tells the text of messages apart from the template's own text in a rendered prompt.
//!
//! Certain characters of the messages are replaced by stand-ins before rendering: characters that
//! occur nowhere else. In the rendered prompt they become the original characters again, and a control
//! token that contains one of them is text. Every control token has such a character near each end, so
//! that no token arises from the text of messages, however the template cuts and joins it.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::Value;

use super::message::{ChatOptions, Message};
use crate::tokenizer::Tokenizer;

/// Characters for private use, which text rarely contains: Unicode's plane 16.
const STAND_INS: std::ops::RangeInclusive<char> = '\u{100000}'..='\u{10FFFD}';

/// A rendered prompt.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Rendered {
    /// The text.
    pub(super) text: String,
    /// Positions, in bytes and ascending, of characters that come from messages. A control token that
    /// contains one of them is text.
    pub(super) foreign: Vec<usize>,
}

/// The input of a template.
#[derive(Clone)]
pub(super) struct Input {
    pub(super) messages: Vec<Message>,
    pub(super) variables: BTreeMap<String, Value>,
}

/// Characters and their stand-ins.
pub(super) struct Marks {
    stand_ins: BTreeMap<char, char>,
    originals: HashMap<char, char>,
}

impl Rendered {
    /// The text.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The prompt up to a position in bytes.
    pub(super) fn cut(mut self, end: usize) -> Self {
        self.text.truncate(end);
        self.foreign.retain(|at| *at < end);
        self
    }

    /// The prompt with a text after it that counts as the template's own.
    #[cfg(feature = "structured")]
    pub(crate) fn followed_by(mut self, text: &str) -> Self {
        self.text.push_str(text);
        self
    }

    /// The token ids. A template writes its own begin token where it wants one, so a second one is left
    /// out.
    pub(crate) fn ids(&self, tokenizer: &Tokenizer) -> Vec<u32> {
        let mut ids = tokenizer.encode_rendered(&self.text, &self.foreign);
        if let [first, second, ..] = ids[..]
            && first == second
            && Some(first) == tokenizer.bos()
        {
            ids.remove(0);
        }
        ids
    }
}

impl Input {
    pub(super) fn new(messages: &[Message], options: &ChatOptions) -> Self {
        Self { messages: messages.to_vec(), variables: options.variables.clone() }
    }

    /// Every text: roles, contents, and the strings of fields and variables, without their names.
    pub(super) fn texts(&self) -> Vec<&str> {
        let mut texts = Vec::new();
        for message in &self.messages {
            texts.extend([&*message.role, &*message.content]);
            message.fields.values().for_each(|value| strings(value, &mut texts));
        }
        self.variables.values().for_each(|value| strings(value, &mut texts));
        texts
    }

    /// With every text changed.
    pub(super) fn map(&self, change: &dyn Fn(&str) -> String) -> Self {
        let all = |values: &BTreeMap<String, Value>| {
            values.iter().map(|(name, value)| (name.clone(), mapped(value, change))).collect()
        };
        let message = |m: &Message| Message {
            role: change(&m.role),
            content: change(&m.content),
            fields: all(&m.fields),
        };
        Self {
            messages: self.messages.iter().map(message).collect(),
            variables: all(&self.variables),
        }
    }
}

fn strings<'a>(value: &'a Value, texts: &mut Vec<&'a str>) {
    match value {
        Value::String(text) => texts.push(text),
        Value::Array(values) => values.iter().for_each(|value| strings(value, texts)),
        Value::Object(values) => values.iter().for_each(|(key, value)| {
            texts.push(key);
            strings(value, texts);
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn mapped(value: &Value, change: &dyn Fn(&str) -> String) -> Value {
    match value {
        Value::String(text) => Value::String(change(text)),
        Value::Array(values) => values.iter().map(|value| mapped(value, change)).collect(),
        Value::Object(values) => {
            let pairs = values.iter().map(|(key, value)| (change(key), mapped(value, change)));
            Value::Object(pairs.collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

impl Marks {
    /// Stand-ins that occur neither in `input` nor in `template`; `None` if there are too few.
    pub(super) fn new(chars: &BTreeSet<char>, input: &Input, template: &str) -> Option<Self> {
        let texts = input.texts().into_iter().chain([template]);
        let used: BTreeSet<char> =
            texts.flat_map(str::chars).filter(|char| STAND_INS.contains(char)).collect();
        let free = STAND_INS.filter(|char| !used.contains(char));
        let stand_ins: BTreeMap<char, char> = chars.iter().copied().zip(free).collect();
        let originals = stand_ins.iter().map(|(char, stand_in)| (*stand_in, *char)).collect();
        (stand_ins.len() == chars.len()).then_some(Self { stand_ins, originals })
    }

    /// `text` with stand-ins for all characters that have one.
    pub(super) fn mark(&self, text: &str) -> String {
        text.chars().map(|char| self.stand_in(char)).collect()
    }

    /// `text` with stand-ins at these positions only.
    pub(super) fn mark_at(&self, text: &str, positions: &[usize]) -> String {
        let marked = |(at, char)| match positions.binary_search(&at) {
            Ok(_) => self.stand_in(char),
            Err(_) => char,
        };
        text.char_indices().map(marked).collect()
    }

    fn stand_in(&self, char: char) -> char {
        self.stand_ins.get(&char).copied().unwrap_or(char)
    }

    /// The prompt that was rendered from marked texts.
    pub(super) fn read(&self, prompt: &str) -> Rendered {
        let mut read = Rendered { text: String::with_capacity(prompt.len()), foreign: Vec::new() };
        for char in prompt.chars() {
            match self.originals.get(&char) {
                Some(original) => {
                    read.foreign.push(read.text.len());
                    read.text.push(*original);
                }
                None => read.text.push(char),
            }
        }
        read
    }
}

/// The characters of which every control token has one near each end, and the punctuation of roles.
/// Characters that the template may search for in messages, which are those of its `literals`, are
/// left out where a token has others.
pub(super) fn telling_chars(
    tokenizer: &Tokenizer,
    literals: &[String],
    input: &Input,
) -> BTreeSet<char> {
    let searched = literals.iter().filter(|text| tokenizer.control_positions(text).is_empty());
    let searched: BTreeSet<char> = searched.flat_map(|text| text.chars()).collect();
    // JSON escapes two characters, and templates strip white space.
    let marked = |char: &char| !char.is_whitespace() && !matches!(char, '"' | '\\');
    let symbol = |char: &char| marked(char) && !char.is_alphanumeric();
    let best = |chars: &mut dyn Iterator<Item = char>| {
        let (mut any, mut any_symbol) = (None, None);
        for char in chars.filter(marked) {
            any = any.or(Some(char));
            if symbol(&char) {
                any_symbol = any_symbol.or(Some(char));
                if !searched.contains(&char) {
                    return Some(char);
                }
            }
        }
        any_symbol.or(any)
    };
    let mut chars: BTreeSet<char> = tokenizer
        .control_texts()
        .flat_map(|text| [best(&mut text.chars()), best(&mut text.chars().rev())])
        .flatten()
        .collect();
    let roles = input.messages.iter().flat_map(|message| message.role.chars());
    chars.extend(roles.filter(|char| symbol(char) && !matches!(char, '_' | '-')));
    chars
}
