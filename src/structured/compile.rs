//! Compiles grammars for the vocabulary of an engine.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use lapwing_actors::drive::blocking::run_on_stack;
use lapwing_actors::sample::Constraint;
use llguidance::api::{ParserLimits, TopLevelGrammar};
use llguidance::toktrie::{
    ApproximateTokEnv, INVALID_TOKEN, InferenceCapabilities, TokEnv, TokRxInfo, TokTrie,
};
use llguidance::{Matcher, ParserFactory};
use serde_json::{Value, json};

use super::constraint::{GrammarState, message};
use super::{Grammar, GrammarError, Kind, gbnf, regex};
use crate::tokenizer::Tokenizer;

/// Bytes of stack for compiling a grammar, which is recursive.
const STACK: usize = 256 << 20;
/// Bytes of the longest grammar.
const BYTES_MAX: usize = 1 << 20;
/// Levels of the deepest schema.
const DEPTH_MAX: usize = 100;
/// Levels of the deepest brackets of a grammar.
const BRACKETS_MAX: usize = 1000;
/// Compiled grammars that are kept for later requests.
const KEPT: usize = 32;
/// Bytes of the longest token that a grammar can use; the trie has no room for longer ones.
const TOKEN_BYTES_MAX: usize = 512;
/// White space between two parts of a JSON text. A model that takes white space for an answer would never end.
const JSON_SPACE: &str = r"[\x20\x0A\x0D\x09]{1,32}";

/// The grammars of an engine. The vocabulary is prepared when the first grammar is used.
pub(crate) struct Grammars {
    tokenizer: Tokenizer,
    compiler: OnceLock<Result<Arc<Compiler>, String>>,
}

struct Compiler {
    factory: ParserFactory,
    /// Compiled grammars in their first state, the latest one last.
    kept: Mutex<Vec<(Grammar, Matcher)>>,
}

impl Grammars {
    pub(crate) fn new(tokenizer: Tokenizer) -> Grammars {
        Grammars { tokenizer, compiler: OnceLock::new() }
    }

    /// A constraint that follows the grammar. Blocks the calling thread while it compiles the grammar, and the
    /// first time while it prepares the vocabulary.
    ///
    /// # Errors
    /// When the grammar is invalid, not supported, or too large.
    pub(crate) fn constraint(
        &self,
        grammar: &Grammar,
    ) -> Result<Box<dyn Constraint>, GrammarError> {
        let refused = |reason| GrammarError::Refused { grammar: grammar.to_string(), reason };
        let compiler = self.compiler.get_or_init(|| {
            let tokenizer = self.tokenizer.clone();
            let made = run_on_stack("vocabulary", STACK, move || Compiler::new(&tokenizer));
            made.map_err(|error| error.to_string()).flatten().map(Arc::new)
        });
        let compiler = compiler.as_ref().map_err(|reason| refused(reason.clone()))?;
        let matcher = match compiler.kept(grammar) {
            Some(matcher) => matcher,
            None => {
                let (compiling, own) = (Arc::clone(compiler), grammar.clone());
                let made = run_on_stack("grammar", STACK, move || compiling.compile(&own));
                compiler.keep(grammar, made.map_err(|error| refused(error.to_string()))??)
            }
        };
        Ok(Box::new(GrammarState::new(matcher)))
    }
}

impl Compiler {
    fn new(tokenizer: &Tokenizer) -> Result<Compiler, String> {
        let words: Vec<Vec<u8>> =
            (0..tokenizer.vocab_size() as u32).map(|id| word(tokenizer, id)).collect();
        let ends: Vec<u32> = tokenizer.eos_ids().collect();
        let end = ends.first().copied().unwrap_or(INVALID_TOKEN);
        let mut trie = TokTrie::from(&TokRxInfo::new(words.len() as u32, end), &words);
        if !ends.is_empty() {
            trie = trie.with_eos_tokens(&ends);
        }
        let env: TokEnv = Arc::new(ApproximateTokEnv::new(trie));
        let slices = llguidance::earley::SlicedBiasComputer::general_slices();
        let factory = ParserFactory::new(&env, InferenceCapabilities::default(), &slices);
        let mut factory = factory.map_err(|error| message(&error))?;
        factory.quiet();
        *factory.limits_mut() = ParserLimits {
            max_lexer_states: 50_000,
            verbose_errors: false,
            ..ParserLimits::default()
        };
        Ok(Compiler { factory, kept: Mutex::default() })
    }

    fn compile(&self, grammar: &Grammar) -> Result<Matcher, GrammarError> {
        let refused = |reason| GrammarError::Refused { grammar: grammar.to_string(), reason };
        let parser = self.factory.create_parser(source(grammar)?);
        let matcher = Matcher::new(parser);
        match matcher.get_error() {
            Some(error) => Err(refused(message(&error))),
            None => Ok(matcher),
        }
    }

    /// A copy of a compiled grammar. Requests share nothing, so that a failure of one concerns no other.
    fn kept(&self, grammar: &Grammar) -> Option<Matcher> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let at = kept.iter().position(|(known, _)| known == grammar)?;
        let latest = kept.remove(at);
        let matcher = latest.1.deep_clone();
        kept.push(latest);
        Some(matcher)
    }

    fn keep(&self, grammar: &Grammar, matcher: Matcher) -> Matcher {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() == KEPT {
            kept.remove(0);
        }
        kept.push((grammar.clone(), matcher.deep_clone()));
        matcher
    }
}

impl std::fmt::Debug for Grammars {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let is_ready = self.compiler.get().is_some();
        f.debug_struct("Grammars").field("is_ready", &is_ready).finish_non_exhaustive()
    }
}

/// The bytes that a token adds to the text; none for a token that no grammar can use.
fn word(tokenizer: &Tokenizer, id: u32) -> Vec<u8> {
    if tokenizer.is_control(id) || tokenizer.is_end(id) {
        return Vec::new();
    }
    let bytes = tokenizer.token_bytes(id).unwrap_or_default().into_owned();
    // The byte 0xFF, which is in no text, marks special tokens in the trie.
    let is_usable = bytes.len() <= TOKEN_BYTES_MAX && !bytes.contains(&0xFF);
    if is_usable { bytes } else { Vec::new() }
}

/// The grammar in the form that the library compiles.
fn source(grammar: &Grammar) -> Result<TopLevelGrammar, GrammarError> {
    let refused = |reason: String| GrammarError::Refused { grammar: grammar.to_string(), reason };
    let (bytes, depth) = match &grammar.kind {
        Kind::JsonObject => (0, 0),
        // The size is that of the text; a value that is too deep is not written.
        Kind::JsonSchema(schema) => match depth(schema, 0) {
            depth if depth > DEPTH_MAX => (0, depth),
            depth => (schema.to_string().len(), depth),
        },
        Kind::Regex(text) | Kind::Lark(text) | Kind::Gbnf(text) => (text.len(), brackets(text)),
        Kind::Choice(texts) => (texts.iter().map(String::len).sum(), 0),
    };
    if bytes > BYTES_MAX {
        return Err(refused(format!("it has {bytes} bytes, and at most {BYTES_MAX} are allowed")));
    }
    let most = if matches!(grammar.kind, Kind::JsonSchema(_)) { DEPTH_MAX } else { BRACKETS_MAX };
    if depth > most {
        return Err(refused(format!("it is nested in more than {most} levels")));
    }
    Ok(match &grammar.kind {
        Kind::JsonObject => TopLevelGrammar::from_json_schema(spaced(json!({"type": "object"}))),
        Kind::JsonSchema(schema) => TopLevelGrammar::from_json_schema(spaced(schema.clone())),
        Kind::Regex(pattern) => TopLevelGrammar::from_regex(regex::without_anchors(pattern)),
        Kind::Lark(text) => TopLevelGrammar::from_lark(text.clone()),
        Kind::Gbnf(text) => TopLevelGrammar::from_lark(gbnf::to_lark(text)?),
        Kind::Choice(texts) if texts.is_empty() => return Err(refused("it is empty".to_owned())),
        Kind::Choice(texts) => TopLevelGrammar::from_regex(&regex::one_of(texts)),
    })
}

/// A schema with bounded white space, unless it has rules for white space of its own.
fn spaced(schema: Value) -> Value {
    let mut schema = match schema {
        Value::Bool(true) => json!({}),
        schema => schema,
    };
    if let Value::Object(members) = &mut schema
        && !members.contains_key("x-guidance")
    {
        let options = json!({"whitespace_pattern": JSON_SPACE});
        members.insert("x-guidance".to_owned(), options);
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
