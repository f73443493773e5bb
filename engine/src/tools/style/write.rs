//! Writes calls as a model would.

use serde_json::Value;

use super::{Elements, Form, Literals, Named, Objects, Style};

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
            Form::Named(named) => named.write(call),
            Form::Elements(elements) => elements.write(call),
            Form::Literals(literals) => literals.write(call),
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
    fn write(&self, Called { name, arguments }: Called<'_>) -> String {
        let Named { begin, within: [prefix, suffix], between, end, .. } = self;
        format!("{begin}{prefix}{name}{suffix}{between}{arguments}{end}")
    }
}

impl Elements {
    fn write(&self, Called { name, arguments }: Called<'_>) -> String {
        let Elements { begin, name_end, key, key_end, value, value_end, end, .. } = self;
        let mut text = format!("{begin}{name}{name_end}");
        for (name, argument) in arguments.as_object().into_iter().flatten() {
            let (attributes, written) = match argument {
                Value::String(argument) => (self.attributes[0], self.quoted(argument)),
                other => (self.attributes[1], other.to_string()),
            };
            text.push_str(&format!("{key}{name}{key_end}{attributes}{value}{written}{value_end}"));
        }
        text + end
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
