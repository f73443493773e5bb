//! Values as programs write them, turned into JSON.

use serde_json::Value;
use serde_json::value::RawValue;

use crate::tools::Kind;

/// Levels of the deepest value.
const DEPTH_MAX: usize = 64;

/// A value of this kind in JSON. What cannot be read is a text.
pub(super) fn of_kind(text: &str, kind: Kind) -> String {
    let quoted = || Value::from(text).to_string();
    if kind == Kind::Text {
        return quoted();
    }
    let trimmed = text.trim();
    let is_json = serde_json::from_str::<&RawValue>(trimmed).is_ok();
    match is_json {
        // Where texts may stand as they are, quotation marks belong to them.
        true if kind == Kind::Any && trimmed.starts_with('"') => quoted(),
        true => trimmed.to_owned(),
        false if kind == Kind::Other => to_json(trimmed, None).unwrap_or_else(quoted),
        false => quoted(),
    }
}

/// A literal in JSON: texts in single, double or these quotes, numbers, the constants of Python and JSON, lists, tuples, and objects
/// whose names may have no quotes. `None` if it is none.
pub(super) fn to_json(text: &str, quote: Option<&str>) -> Option<String> {
    let mut reader = Literal { rest: text.trim(), quote, json: String::new() };
    reader.value(0)?;
    reader.rest.trim().is_empty().then_some(reader.json)
}

struct Literal<'a> {
    rest: &'a str,
    quote: Option<&'a str>,
    json: String,
}

impl<'a> Literal<'a> {
    fn value(&mut self, depth: usize) -> Option<()> {
        if depth > DEPTH_MAX {
            return None;
        }
        self.rest = self.rest.trim_start();
        if let Some(text) = self.quoted() {
            self.json.push_str(&Value::from(text?).to_string());
            return Some(());
        }
        match self.rest.chars().next()? {
            '[' => self.items("[]", depth),
            '(' => self.items("()", depth),
            '{' => self.members(depth),
            _ => self.atom(),
        }
    }

    /// A text in quotes; `None` if there is none, and `Some(None)` if it does not end.
    fn quoted(&mut self) -> Option<Option<String>> {
        if let Some(quote) = self.quote
            && let Some(rest) = self.rest.strip_prefix(quote)
        {
            let split = rest.split_once(quote);
            return Some(split.map(|(text, rest)| {
                self.rest = rest;
                text.to_owned()
            }));
        }
        let mark = self.rest.chars().next().filter(|char| matches!(char, '"' | '\''))?;
        Some(self.escaped(mark))
    }

    /// A text with escapes up to this quotation mark.
    fn escaped(&mut self, mark: char) -> Option<String> {
        let mut text = String::new();
        let mut chars = self.rest.char_indices().skip(1);
        while let Some((at, char)) = chars.next() {
            match char {
                _ if char == mark => {
                    self.rest = &self.rest[at + char.len_utf8()..];
                    return Some(text);
                }
                '\\' => match chars.next()?.1 {
                    'n' => text.push('\n'),
                    't' => text.push('\t'),
                    'r' => text.push('\r'),
                    'b' => text.push('\u{8}'),
                    'f' => text.push('\u{c}'),
                    '0' => text.push('\0'),
                    '\n' => {}
                    digits @ ('x' | 'u' | 'U') => {
                        let count = match digits {
                            'x' => 2,
                            'u' => 4,
                            _ => 8,
                        };
                        let code: String =
                            chars.by_ref().take(count).map(|(_, char)| char).collect();
                        let code = u32::from_str_radix(&code, 16).ok()?;
                        text.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
                    }
                    other @ ('\\' | '\'' | '"' | '/') => text.push(other),
                    other => text.extend(['\\', other]),
                },
                _ => text.push(char),
            }
        }
        None
    }

    /// A list or a tuple.
    fn items(&mut self, brackets: &str, depth: usize) -> Option<()> {
        let close = brackets.chars().nth(1)?;
        self.rest = &self.rest[1..];
        self.json.push('[');
        let mut is_first = true;
        while !self.takes(close) {
            if !std::mem::take(&mut is_first) {
                self.json.push(',');
            }
            self.value(depth + 1)?;
            if !self.takes(',') && !self.rest.trim_start().starts_with(close) {
                return None;
            }
        }
        self.json.push(']');
        Some(())
    }

    /// An object.
    fn members(&mut self, depth: usize) -> Option<()> {
        self.rest = &self.rest[1..];
        self.json.push('{');
        let mut is_first = true;
        while !self.takes('}') {
            if !std::mem::take(&mut is_first) {
                self.json.push(',');
            }
            self.rest = self.rest.trim_start();
            let name = match self.quoted() {
                Some(name) => name?,
                None => {
                    let (name, _) = self.rest.split_once(':')?;
                    self.rest = &self.rest[name.len()..];
                    name.trim().to_owned()
                }
            };
            self.json.push_str(&Value::from(name).to_string());
            if !self.takes(':') {
                return None;
            }
            self.json.push(':');
            self.value(depth + 1)?;
            if !self.takes(',') && !self.rest.trim_start().starts_with('}') {
                return None;
            }
        }
        self.json.push('}');
        Some(())
    }

    /// A number or a constant.
    fn atom(&mut self) -> Option<()> {
        let end = self.rest.find(|char: char| char.is_whitespace() || ",]})".contains(char));
        let (atom, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest;
        let json = match atom {
            "True" => "true",
            "False" => "false",
            "None" => "null",
            atom => serde_json::from_str::<&RawValue>(atom).ok()?.get(),
        };
        self.json.push_str(json);
        Some(())
    }

    /// Takes a character, if it is the next one but for white space.
    fn takes(&mut self, char: char) -> bool {
        let rest = self.rest.trim_start().strip_prefix(char);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_become_json() {
        let rows = [
            ("'it\\'s'", Some(r#""it's""#)),
            ("\"a\\n\\x41\\u00e9\"", Some("\"a\\nAé\"")),
            ("[1, -2.50, True, None]", Some("[1,-2.50,true,null]")),
            ("(1,)", Some("[1]")),
            ("{'a': [], \"b\": {}}", Some(r#"{"a":[],"b":{}}"#)),
            ("{a: 1, b: 'x, y}'}", Some(r#"{"a":1,"b":"x, y}"}"#)),
            ("12345678901234567890123", Some("12345678901234567890123")),
            ("<|\"|>say \"hi\"<|\"|>", Some(r#""say \"hi\"""#)),
            ("[<|\"|>a<|\"|>,<|\"|>b<|\"|>]", Some(r#"["a","b"]"#)),
            ("'open", None),
            ("[1", None),
            ("word", None),
            ("1 2", None),
            ("", None),
        ];
        for (literal, want) in rows {
            assert_eq!(to_json(literal, Some("<|\"|>")).as_deref(), want, "{literal}");
        }
        assert_eq!(to_json(&"[".repeat(1000), None), None);
    }

    #[test]
    fn values_are_what_the_schema_says() {
        let rows = [
            ("5", Kind::Text, r#""5""#),
            ("5", Kind::Other, "5"),
            ("5", Kind::Any, "5"),
            ("five", Kind::Other, r#""five""#),
            ("True", Kind::Other, "true"),
            ("\"a\"", Kind::Any, r#""\"a\"""#),
            ("{'a': 1}", Kind::Other, r#"{"a":1}"#),
            (" [1, 2] ", Kind::Any, "[1, 2]"),
        ];
        for (text, kind, want) in rows {
            assert_eq!(of_kind(text, kind), want, "{text} as {kind:?}");
        }
    }
}
