//! Options of structured output.

use std::path::Path;

use clap::Args;
use lapwing_engine::TokenStream;
use lapwing_engine::structured::Grammar;

use super::session::Session;

/// What the answer must look like.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Structured output")]
#[group(multiple = false, conflicts_with = "ignore_eos")]
pub(crate) struct GrammarArgs {
    /// Answer with JSON of a schema: a file, or the schema itself
    #[arg(long, value_name = "SCHEMA", value_parser = json_schema)]
    json_schema: Option<Grammar>,

    /// Answer with text of the grammar in FILE: .gbnf or .lark
    ///
    /// .gbnf is llama.cpp's form. A grammar in that form can also be given itself, if it has ::= in it.
    #[arg(long, value_name = "FILE", value_parser = grammar)]
    grammar: Option<Grammar>,

    /// Answer with text that a regular expression matches
    ///
    /// As a whole.
    #[arg(long, value_name = "RE", value_parser = regex)]
    regex: Option<Grammar>,
}

impl GrammarArgs {
    /// The grammar, if one is given.
    pub(crate) fn grammar(&self) -> Option<&Grammar> {
        self.json_schema.as_ref().or(self.grammar.as_ref()).or(self.regex.as_ref())
    }
}

/// Names the keywords of the schema that have no effect.
pub(crate) fn note_ignored(stream: &TokenStream, session: &Session) {
    let ignored = stream.ignored_keywords();
    if !ignored.is_empty() {
        let names = ignored.join(", ");
        session.note(&format!("these parts of the schema have no effect on the answer: {names}"));
    }
}

fn json_schema(value: &str) -> Result<Grammar, String> {
    let is_schema = value.trim_start().starts_with('{');
    let text = if is_schema { value.to_owned() } else { contents(value)? };
    let schema = serde_json::from_str(&text).map_err(|error| format!("no JSON: {error}"))?;
    Ok(Grammar::json_schema(schema))
}

fn grammar(file: &str) -> Result<Grammar, String> {
    if file.contains("::=") {
        return Ok(Grammar::gbnf(file.to_owned()));
    }
    match Path::new(file).extension().and_then(|extension| extension.to_str()) {
        Some("gbnf") => Ok(Grammar::gbnf(contents(file)?)),
        Some("lark") => Ok(Grammar::lark(contents(file)?)),
        _ => Err("the name must end in .gbnf or .lark".to_owned()),
    }
}

#[expect(clippy::unnecessary_wraps, reason = "a parser of values returns a result")]
fn regex(pattern: &str) -> Result<Grammar, String> {
    Ok(Grammar::regex(pattern))
}

/// The text of a file, without the mark of its byte order that some editors write first.
fn contents(file: &str) -> Result<String, String> {
    let text = std::fs::read_to_string(file);
    let text = text.map_err(|error| format!("cannot open the file: {error}"))?;
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}
