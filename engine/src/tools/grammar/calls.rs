//! The grammar of one call in each form.

use serde_json::{Map, Value};

use super::super::signatures::{Kind, kind};
use super::super::{Elements, Form, Literals, Named, Objects};
use super::trees;
use crate::structured::{Function, Grammar, ObjectForm};

/// Characters of names of arguments that no schema lists.
const NAME: &str = "[A-Za-z_][A-Za-z0-9_]*";

/// A text, if it is not empty.
pub(super) fn mark(text: &str) -> Option<Grammar> {
    (!text.is_empty()).then(|| Grammar::mark(text))
}

/// Those parts that there are, one after the other.
pub(super) fn sequence(parts: impl IntoIterator<Item = Option<Grammar>>) -> Grammar {
    Grammar::sequence(parts.into_iter().flatten())
}

/// The characters of an id.
const ID: &str = "[a-z0-9]{10}";
/// The number of a call.
const NUMBER: &str = "[1-9][0-9]?";

/// The call of a function as a message in its channel.
fn call_in_channel(function: Function) -> Grammar {
    let head = format!(
        "<|channel|>commentary to=functions.{} <|constrain|>json<|message|>",
        function.name
    );
    sequence([mark(&head), Some(Grammar::arguments(function))])
}

/// Messages in channels, of which the last one may be a call; `start` begins each after the first.
pub(super) fn messages(functions: Vec<Function>, start: &str) -> Grammar {
    let message = sequence([
        mark("<|channel|>"),
        Some(Grammar::choice(["analysis", "commentary", "final"])),
        mark("<|message|>"),
        Some(Grammar::regex("(?s:.*)")),
    ]);
    let earlier = sequence([Some(message.clone()), mark(&format!("<|end|>{start}"))]);
    let calls = functions.into_iter().map(call_in_channel);
    sequence([
        mark(start).map(Grammar::optional),
        Some(Grammar::repeated(earlier)),
        Some(Grammar::one_of(calls.chain([message]))),
    ])
}

impl Form {
    /// The call of a function, without the texts around it.
    pub(super) fn grammar(&self, function: Function) -> Grammar {
        match self {
            Form::Objects(objects) => objects.grammar(function),
            Form::Named(named) => named.grammar(function),
            Form::Elements(elements) => elements.grammar(function),
            Form::Literals(literals) => literals.grammar(function),
            Form::Tree(tree) => trees::grammar(tree, function),
            Form::Channels => call_in_channel(function),
        }
    }
}

impl Objects {
    fn grammar(&self, function: Function) -> Grammar {
        let Objects { name, arguments, number } = *self;
        Grammar::object(ObjectForm { function, name, arguments, number })
    }
}

impl Named {
    fn grammar(&self, function: Function) -> Grammar {
        let Named { begin, id_end, within: [prefix, suffix], between, end, .. } = self;
        let name = format!("{prefix}{}{suffix}{between}", function.name);
        let head = match id_end.is_empty() {
            true => mark(&format!("{begin}{name}")),
            false => {
                let rest = mark(&format!("{id_end}{name}"));
                Some(sequence([mark(begin), Some(Grammar::regex(ID)), rest]))
            }
        };
        sequence([head, Some(Grammar::arguments(function)), mark(end)])
    }
}

/// An argument that a call may have.
pub(super) struct Argument {
    pub(super) is_required: bool,
    pub(super) value: Grammar,
}

/// The arguments of a function, in the order of its schema; `None` if the schema does not list them.
fn arguments(
    function: &Function,
    value: impl Fn(&str, Value, Kind) -> Grammar,
) -> Option<Vec<Argument>> {
    let Some(Value::Object(schema)) = &function.parameters else { return Some(Vec::new()) };
    let Some(Value::Object(properties)) = schema.get("properties") else {
        let is_closed =
            schema.is_empty() || schema.get("additionalProperties") == Some(&false.into());
        return is_closed.then(Vec::new);
    };
    let required = schema.get("required").and_then(Value::as_array);
    let is_required =
        |name: &String| required.is_some_and(|names| names.iter().any(|known| known == name));
    let root = Value::Object(schema.clone());
    let argument = |(name, property): (&String, &Value)| Argument {
        is_required: is_required(name),
        value: value(name, within(property, schema), kind(property, &root)),
    };
    Some(properties.iter().map(argument).collect())
}

/// The schema of a property with the definitions of the whole, to which its references lead.
pub(super) fn within(property: &Value, root: &Map<String, Value>) -> Value {
    let Value::Object(property) = property else { return property.clone() };
    let mut schema = property.clone();
    for name in ["$defs", "definitions"] {
        if let Some(definitions) = root.get(name) {
            schema.entry(name).or_insert_with(|| definitions.clone());
        }
    }
    schema.into()
}

/// The texts that a schema lists, if it lists only texts.
pub(super) fn texts(schema: &Value) -> Option<Vec<String>> {
    let listed = match (schema.get("const"), schema.get("enum")) {
        (Some(value), _) => std::slice::from_ref(value),
        (None, Some(Value::Array(values))) => values,
        _ => return None,
    };
    listed.iter().map(|value| value.as_str().map(str::to_owned)).collect()
}

/// The label of an argument's schema.
pub(super) fn label(function: &Function, name: &str) -> String {
    format!("tools.{}.parameters/properties/{name}", function.name)
}

impl Elements {
    fn grammar(&self, function: Function) -> Grammar {
        let Elements { begin, name_end, key, key_end, value: open, value_end, end, .. } = self;
        let [of_texts, of_others] = self.attributes;
        let value = |name: &str, schema: Value, kind: Kind| {
            let head = format!("{key}{name}{key_end}");
            if kind == Kind::Other {
                let attributes = with_type(of_others, &schema, open);
                let json = Grammar::value(label(&function, name), schema);
                return sequence([mark(&head), attributes, Some(json), mark(value_end)]);
            }
            let text = match texts(&schema) {
                Some(texts) => sequence([Some(Grammar::choice(texts)), mark(value_end)]),
                None => Grammar::until(*value_end),
            };
            sequence([mark(&format!("{head}{of_texts}{open}")), Some(text)])
        };
        let arguments = match arguments(&function, value) {
            Some(arguments) => arguments.into_iter().map(optional).collect(),
            None => vec![Grammar::optional(self.any())],
        };
        let head = mark(&format!("{begin}{}{name_end}", function.name));
        let number = self.number.map(|[before, after]| {
            sequence([mark(before), Some(Grammar::regex(NUMBER)), mark(after)])
        });
        sequence(
            [head, number].into_iter().chain(arguments.into_iter().map(Some)).chain([mark(end)]),
        )
    }

    /// An argument with any name and value.
    fn any(&self) -> Grammar {
        let Elements { key, key_end, value, value_end, .. } = self;
        let name = Some(Grammar::regex(NAME));
        let open = mark(&format!("{key_end}{}{value}", self.attributes[0]));
        sequence([mark(key), name, open, Some(Grammar::until(*value_end))])
    }
}

/// Attributes and the text after them, with the type of a value of this schema where they name it.
fn with_type(attributes: &str, schema: &Value, after: &str) -> Option<Grammar> {
    const TYPES: [&str; 5] = ["number", "boolean", "object", "array", "null"];
    let Some((before, rest)) = attributes.split_once("{}") else {
        return mark(&format!("{attributes}{after}"));
    };
    let rest = format!("{rest}{after}");
    match schema.get("type").and_then(Value::as_str).map(|name| name.replace("integer", "number")) {
        Some(name) => mark(&format!("{before}{name}{rest}")),
        None => Some(sequence([mark(before), Some(Grammar::choice(TYPES)), mark(&rest)])),
    }
}

/// An argument, which need not be there if it is not required.
pub(super) fn optional(argument: Argument) -> Grammar {
    match argument.is_required {
        true => argument.value,
        false => Grammar::optional(argument.value),
    }
}

impl Literals {
    fn grammar(&self, function: Function) -> Grammar {
        let Literals { begin, brackets: [open, close], assign, quote } = self;
        let value = |name: &str, schema: Value, kind: Kind| {
            let head = mark(&format!("{name}{assign}"));
            let value = match (quote, texts(&schema)) {
                (Some(quote), Some(texts)) => {
                    sequence([mark(quote), Some(Grammar::choice(texts)), mark(quote)])
                }
                (Some(quote), None) if kind == Kind::Text => {
                    sequence([mark(quote), Some(Grammar::until(*quote))])
                }
                _ => Grammar::value(label(&function, name), schema),
            };
            sequence([head, Some(value)])
        };
        let head = mark(&format!("{begin}{}{open}", function.name));
        let arguments = arguments(&function, value).unwrap_or_default();
        let separator = if quote.is_some() { "," } else { ", " };
        sequence([head, separated(arguments, separator), mark(&close.to_string())])
    }
}

/// Arguments with a text between each two of those that are there; `None` without any.
fn separated(arguments: Vec<Argument>, separator: &str) -> Option<Grammar> {
    // What may follow an argument, and what may stand where none precedes.
    let (mut after, mut first): (Option<Grammar>, Option<Grammar>) = (None, None);
    for Argument { is_required, value, .. } in arguments.into_iter().rev() {
        let here = sequence([Some(value.clone()), after.clone()]);
        first = Some(match (is_required, first) {
            (true, _) => here,
            (false, None) => Grammar::optional(here),
            (false, Some(first)) => Grammar::one_of([here, first]),
        });
        let next = sequence([mark(separator), Some(value)]);
        let next = if is_required { next } else { Grammar::optional(next) };
        after = Some(sequence([Some(next), after]));
    }
    first
}
