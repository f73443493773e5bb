//! Writes calls as a model would.

use serde_json::Value;

use super::{Elements, Form, Literals, Named, Objects, Style, Tree};

/// A call that is written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Called<'a> {
    pub(crate) name: &'a str,
    /// An object, as a rule.
    pub(crate) arguments: &'a Value,
}

impl Style {
    /// The calls as text.
    pub(crate) fn write(&self, calls: &[Called<'_>]) -> String {
        let [before, after] = self.around;
        let open = self.open.first().copied().unwrap_or_default();
        let part = |calls: String| format!("{open}{before}{calls}{after}{}", self.close);
        let written = calls.iter().enumerate().map(|(number, call)| self.form.write(*call, number));
        match &self.form {
            Form::Objects(_) if before.contains('[') => {
                part(written.collect::<Vec<_>>().join(", "))
            }
            Form::Named(named) if !named.begin.is_empty() => part(written.collect()),
            _ => written.map(part).collect(),
        }
    }
}

impl Form {
    fn write(&self, call: Called<'_>, number: usize) -> String {
        match self {
            Form::Objects(objects) => objects.write(call, number),
            Form::Named(named) => named.write(call, number),
            Form::Elements(elements) => elements.write(call, number),
            Form::Literals(literals) => literals.write(call),
            Form::Tree(tree) => tree.write(call),
            Form::Channels => {
                let Called { name, arguments } = call;
                format!(
                    "<|channel|>commentary to=functions.{name} <|constrain|>json<|message|>{arguments}"
                )
            }
        }
    }
}

impl Objects {
    fn write(&self, Called { name, arguments }: Called<'_>, number: usize) -> String {
        let quoted = Value::from(name);
        let Some(member) = self.name else { return format!("{{{quoted}:{arguments}}}") };
        let number = self.number.map(|member| format!("\"{member}\":\"{number}\","));
        let number = number.unwrap_or_default();
        format!("{{{number}\"{member}\":{quoted},\"{}\":{arguments}}}", self.arguments)
    }
}

impl Named {
    fn write(&self, Called { name, arguments }: Called<'_>, number: usize) -> String {
        let Named { begin, id_end, within: [prefix, suffix], between, end, .. } = self;
        let id = if id_end.is_empty() { String::new() } else { format!("call{number:06}") };
        format!("{begin}{id}{id_end}{prefix}{name}{suffix}{between}{arguments}{end}")
    }
}

impl Elements {
    fn write(&self, Called { name, arguments }: Called<'_>, number: usize) -> String {
        let Elements { begin, name_end, key, key_end, value, value_end, end, .. } = self;
        let mut text = format!("{begin}{name}{name_end}{}", self.numbered(number));
        for (name, argument) in arguments.as_object().into_iter().flatten() {
            let (attributes, written) = match argument {
                Value::String(text) => (self.attributes[0].to_owned(), self.quoted(text)),
                other => (self.attributes[1].replace("{}", type_of(other)), other.to_string()),
            };
            text.push_str(&format!("{key}{name}{key_end}{attributes}{value}{written}{value_end}"));
        }
        text + end
    }

    /// The number of a call, counted from 1, if the style has it.
    pub(crate) fn numbered(&self, number: usize) -> String {
        let text = |[before, after]: [&str; 2]| format!("{before}{}{after}", number + 1);
        self.number.map(text).unwrap_or_default()
    }

    /// A text, in quotes if it needs them and there are some.
    fn quoted(&self, text: &str) -> String {
        match self.quotes {
            Some([open, close]) if text.contains(['<', '&', '\n']) => {
                format!("{open}{text}{close}")
            }
            _ => text.to_owned(),
        }
    }
}

/// The type of a value as JSON schemas call it.
fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

impl Tree {
    fn write(&self, Called { name, arguments }: Called<'_>) -> String {
        let Tree { begin, name_end, end, .. } = self;
        format!("{begin}{name}{name_end}{}{end}", self.value(arguments))
    }

    fn value(&self, value: &Value) -> String {
        let element = |name: &str, value: &Value| {
            format!("{}{}{}", self.open(name), self.value(value), self.close(name))
        };
        match value {
            Value::String(text) => text.clone(),
            Value::Object(members) => {
                members.iter().map(|(name, value)| element(name, value)).collect()
            }
            Value::Array(items) => items.iter().map(|item| element(self.item, item)).collect(),
            other => other.to_string(),
        }
    }

    /// The tag that begins an element.
    pub(crate) fn open(&self, name: &str) -> String {
        format!("{}<{name}>", self.tag)
    }

    /// The tag that ends an element.
    pub(crate) fn close(&self, name: &str) -> String {
        format!("{}</{name}>", self.tag)
    }
}

impl Literals {
    fn write(&self, Called { name, arguments }: Called<'_>) -> String {
        let Literals { begin, brackets: [open, close], assign, .. } = self;
        let arguments = arguments.as_object().into_iter().flatten();
        let arguments =
            arguments.map(|(name, value)| format!("{name}{assign}{}", self.value(value)));
        let separator = if self.quote.is_some() { "," } else { ", " };
        let arguments = arguments.collect::<Vec<_>>().join(separator);
        format!("{begin}{name}{open}{arguments}{close}")
    }

    /// A value, with the words of Python where texts have its quotation marks.
    fn value(&self, value: &Value) -> String {
        let list = |items: Vec<String>| items.join(",");
        match (value, self.quote) {
            (Value::String(text), Some(quote)) => format!("{quote}{text}{quote}"),
            (Value::Bool(true), None) => "True".to_owned(),
            (Value::Bool(false), None) => "False".to_owned(),
            (Value::Null, None) => "None".to_owned(),
            (Value::Array(items), _) => {
                format!("[{}]", list(items.iter().map(|item| self.value(item)).collect()))
            }
            (Value::Object(members), quote) => {
                let member = |(name, value): (&String, &Value)| match quote {
                    Some(_) => format!("{name}:{}", self.value(value)),
                    None => format!("{}:{}", Value::from(&**name), self.value(value)),
                };
                format!("{{{}}}", list(members.iter().map(member).collect()))
            }
            (other, _) => other.to_string(),
        }
    }
}
