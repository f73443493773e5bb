//! Grammars in the form that the library compiles.

use std::fmt::Write;

use llguidance::api::TopLevelGrammar;
use llguidance::regex_to_lark;
use serde_json::{Value, json};

use super::schema::Schemas;
use super::{Grammar, GrammarError, Kind, Piece, Tag, gbnf, regex};
use crate::tokenizer::Tokenizer;

/// Bytes of the longest grammar.
const BYTES_MAX: usize = 1 << 20;
/// Levels of the deepest schema.
const DEPTH_MAX: usize = 100;
/// Levels of the deepest brackets of a grammar.
const BRACKETS_MAX: usize = 1000;
/// White space between two parts of a JSON text: a line feed and an indentation, or at most two spaces. A model that takes
/// white space for an answer would never end.
const JSON_SPACE: &str = r"[\x20\x09]{1,2}|\x20?\x0D?\x0A[\x20\x09]{0,32}";
/// White space between two parts of a call.
const CALL_SPACE: &str = "[ \\n]{1,8}";
/// Any text.
const ANY: &str = "/(?s:.*)/";
/// The key of a schema with the library's options.
const OPTIONS: &str = "x-guidance";

/// A grammar that the library compiles.
pub(super) struct Source {
    pub(super) grammar: TopLevelGrammar,
    /// Keywords of its schemas that have no effect.
    pub(super) ignored: Vec<String>,
}

/// The grammar in the form that the library compiles, for the vocabulary of a tokenizer.
///
/// # Errors
/// When it is invalid, not supported, or too large.
pub(super) fn source(grammar: &Grammar, tokenizer: &Tokenizer) -> Result<Source, GrammarError> {
    check(grammar)?;
    let mut lark = Lark { tokenizer, rules: String::new(), count: 0, ignored: Vec::new() };
    let made = match &grammar.kind {
        Kind::JsonObject | Kind::JsonSchema(_) | Kind::Calls(_) => {
            TopLevelGrammar::from_json_schema(lark.json(grammar)?)
        }
        Kind::Regex(pattern) => TopLevelGrammar::from_regex(regex::without_anchors(pattern)),
        Kind::Lark(text) => TopLevelGrammar::from_lark(text.clone()),
        Kind::Gbnf(text) => TopLevelGrammar::from_lark(gbnf::to_lark(text)?),
        Kind::Choice(texts) => TopLevelGrammar::from_regex(&regex::one_of(texts)),
        Kind::Sequence(_) | Kind::OneOf(_) | Kind::Tagged(_) | Kind::Piece(_) => {
            let start = lark.rule(grammar)?;
            TopLevelGrammar::from_lark(format!("start: {start}\n{}", lark.rules))
        }
    };
    Ok(Source { grammar: made, ignored: lark.ignored })
}

fn refused(grammar: &Grammar, reason: String) -> GrammarError {
    GrammarError::Refused { grammar: grammar.to_string(), reason }
}

/// Checks the limits of a grammar and of its parts.
fn check(grammar: &Grammar) -> Result<(), GrammarError> {
    let (bytes, depth, most) = match &grammar.kind {
        Kind::JsonObject => (0, 0, DEPTH_MAX),
        Kind::JsonSchema(schema) => sized([schema]),
        Kind::Calls(form) => {
            sized(form.functions.iter().filter_map(|function| function.parameters.as_ref()))
        }
        Kind::Regex(text) | Kind::Lark(text) | Kind::Gbnf(text) => {
            (text.len(), brackets(text), BRACKETS_MAX)
        }
        Kind::Choice(texts) if texts.is_empty() => {
            return Err(refused(grammar, "it is empty".to_owned()));
        }
        Kind::Choice(texts) => (texts.iter().map(String::len).sum(), 0, BRACKETS_MAX),
        Kind::Sequence(parts) | Kind::OneOf(parts) => return parts.iter().try_for_each(check),
        Kind::Tagged(tags) => return tags.iter().try_for_each(|tag| check(&tag.inside)),
        Kind::Piece(
            Piece::Free { inside, .. } | Piece::Optional(inside) | Piece::Repeated(inside),
        ) => return check(inside),
        Kind::Piece(piece) => sized(piece.schemas()),
    };
    if bytes > BYTES_MAX {
        let reason = format!("it has {bytes} bytes, and at most {BYTES_MAX} are allowed");
        return Err(refused(grammar, reason));
    }
    match depth > most {
        true => Err(refused(grammar, format!("it is nested in more than {most} levels"))),
        false => Ok(()),
    }
}

/// Bytes and levels of schemas, and the most levels. A value that is too deep is not written.
fn sized<'a>(schemas: impl IntoIterator<Item = &'a Value>) -> (usize, usize, usize) {
    let (mut bytes, mut deepest) = (0, 0);
    for schema in schemas {
        deepest = deepest.max(depth(schema, 0));
        bytes += if deepest > DEPTH_MAX { 0 } else { schema.to_string().len() };
    }
    (bytes, deepest, DEPTH_MAX)
}

/// Rules of a grammar in Lark syntax.
struct Lark<'a> {
    tokenizer: &'a Tokenizer,
    rules: String,
    count: usize,
    ignored: Vec<String>,
}

impl Lark<'_> {
    /// The schema of a grammar of JSON.
    fn json(&mut self, grammar: &Grammar) -> Result<Value, GrammarError> {
        let mut schemas = Schemas::default();
        let schema = match &grammar.kind {
            Kind::Calls(form) => form.schema(&mut schemas).map(|schema| spaced(schema, CALL_SPACE)),
            Kind::JsonSchema(schema) => schemas.add("schema", schema).map(|written| {
                let mut written = schemas.with_definitions(match written {
                    Value::Bool(true) => json!({}),
                    written => written,
                });
                if let (Some(options), Value::Object(members)) = (schema.get(OPTIONS), &mut written)
                {
                    members.insert(OPTIONS.to_owned(), options.clone());
                }
                spaced(written, JSON_SPACE)
            }),
            _ => Ok(spaced(json!({ "type": "object" }), JSON_SPACE)),
        };
        self.ignored.extend(schemas.into_ignored());
        schema.map_err(|reason| refused(grammar, reason))
    }

    /// Adds a rule with what `body` is.
    fn add(&mut self, attributes: &str, body: &str) -> String {
        self.count += 1;
        let name = format!("part_{}", self.count);
        // Writing to a string does not fail.
        let _ = writeln!(self.rules, "{name}{attributes}: {body}");
        name
    }

    /// The name of a rule for a grammar.
    fn rule(&mut self, grammar: &Grammar) -> Result<String, GrammarError> {
        let body = match &grammar.kind {
            Kind::JsonObject | Kind::JsonSchema(_) | Kind::Calls(_) => {
                format!("%json {}", self.json(grammar)?)
            }
            Kind::Regex(pattern) => {
                format!("/{}/", regex_to_lark(regex::without_anchors(pattern), ""))
            }
            Kind::Choice(texts) => format!("/{}/", regex::one_of(texts)),
            Kind::Lark(text) => format!("%lark {{\n{text}\n}}"),
            Kind::Gbnf(text) => format!("%lark {{\n{}\n}}", gbnf::to_lark(text)?),
            Kind::Sequence(parts) => self.rules(parts)?.join(" "),
            Kind::OneOf(parts) => self.rules(parts)?.join(" | "),
            Kind::Tagged(tags) => self.tagged(tags)?,
            Kind::Piece(piece) => self.piece(piece, grammar)?,
        };
        Ok(self.add("", &body))
    }

    /// What a piece of a call is.
    fn piece(&mut self, piece: &Piece, grammar: &Grammar) -> Result<String, GrammarError> {
        let mut schemas = Schemas::default();
        let schema = piece.schema(&mut schemas);
        self.ignored.extend(schemas.into_ignored());
        if let Some(schema) = schema.map_err(|reason| refused(grammar, reason))? {
            return Ok(format!("%json {}", spaced(schema, CALL_SPACE)));
        }
        Ok(match piece {
            Piece::Mark(text) => marks(text, self.tokenizer).join(" "),
            Piece::Until(mark) => self.until(mark),
            Piece::Free { begin, inside, end } => {
                let begin = self.until(begin);
                let inside = self.rule(inside)?;
                let end = marks(end, self.tokenizer).join(" ");
                format!("({begin} {inside} {end})* {ANY}")
            }
            Piece::Optional(grammar) => format!("({})?", self.rule(grammar)?),
            Piece::Repeated(grammar) => format!("({})*", self.rule(grammar)?),
            Piece::Arguments(_) | Piece::Object(_) | Piece::Value { .. } => String::new(),
        })
    }

    /// Any text up to a mark, and the mark. A control token is in no text; other texts end it where they are first complete.
    fn until(&mut self, mark: &str) -> String {
        let marks = marks(mark, self.tokenizer);
        match marks.split_first() {
            Some((first, rest)) if !first.starts_with('<') => {
                let first = self.add("[lazy]", &format!("{ANY} {first}"));
                format!("{first} {}", rest.join(" "))
            }
            _ => format!("{ANY} {}", marks.join(" ")),
        }
    }

    fn rules(&mut self, grammars: &[Grammar]) -> Result<Vec<String>, GrammarError> {
        grammars.iter().map(|grammar| self.rule(grammar)).collect()
    }

    /// Text with tags: it is free until a trigger is complete.
    fn tagged(&mut self, tags: &[Tag]) -> Result<String, GrammarError> {
        let mut triggers: Vec<(&str, String)> = Vec::new();
        let mut tagged = Vec::new();
        for tag in tags {
            let known = triggers.iter().position(|(trigger, _)| *trigger == tag.trigger);
            let known = known.unwrap_or_else(|| {
                let body = format!("/(?s:.*)/ {}", Value::from(&*tag.trigger));
                // The text ends with the first trigger.
                triggers.push((&tag.trigger, self.add("[lazy]", &body)));
                triggers.len() - 1
            });
            let rest = tag.begin.strip_prefix(&tag.trigger).unwrap_or_default();
            let inside = self.rule(&tag.inside)?;
            let (rest, end) = (quoted(rest), quoted(&tag.end));
            tagged.push(format!("{} {rest} {inside} {end}", triggers[known].1));
        }
        Ok(match tagged.is_empty() {
            true => "/(?s:.*)/".to_owned(),
            false => format!("({})* /(?s:.*)/", tagged.join(" | ")),
        })
    }
}

/// A text as literals and control tokens.
fn marks(text: &str, tokenizer: &Tokenizer) -> Vec<String> {
    let (mut marks, mut from) = (Vec::new(), 0);
    for at in tokenizer.control_positions(text) {
        let found = tokenizer.control_texts().filter(|token| text[at..].starts_with(token));
        let Some(token) = found.max_by_key(|token| token.len()) else { continue };
        let Some(id) = tokenizer.token_id(token).filter(|_| at >= from) else { continue };
        marks.push(quoted(&text[from..at]));
        marks.push(format!("<[{id}]>"));
        from = at + token.len();
    }
    marks.push(quoted(&text[from..]));
    marks.retain(|mark| !mark.is_empty());
    marks
}

/// A text as a literal.
fn quoted(text: &str) -> String {
    if text.is_empty() { String::new() } else { Value::from(text).to_string() }
}

/// A schema with bounded white space, unless it has rules for white space of its own.
fn spaced(mut schema: Value, space: &str) -> Value {
    if let Value::Object(members) = &mut schema {
        members.entry(OPTIONS).or_insert_with(|| json!({ "whitespace_pattern": space }));
    }
    schema
}

/// Levels of a JSON value below `level`; counts no further than the deepest that is allowed.
fn depth(value: &Value, level: usize) -> usize {
    if level > DEPTH_MAX {
        return level;
    }
    match value {
        Value::Array(items) => items.iter().map(|item| depth(item, level + 1)).max(),
        Value::Object(members) => members.values().map(|item| depth(item, level + 1)).max(),
        _ => None,
    }
    .unwrap_or(level)
}

/// Levels of the brackets in a text; those in literals count as well.
fn brackets(text: &str) -> usize {
    let (mut level, mut deepest) = (0_usize, 0);
    for byte in text.bytes() {
        match byte {
            b'(' | b'[' | b'{' => level += 1,
            b')' | b']' | b'}' => level = level.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(level);
    }
    deepest
}
