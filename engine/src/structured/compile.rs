//! Compiles grammars for the vocabulary of an engine.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use lapwing_actors::drive::blocking::run_on_stack;
use lapwing_actors::sample::Constraint;
use llguidance::api::ParserLimits;
use llguidance::toktrie::{
    ApproximateTokEnv, INVALID_TOKEN, InferenceCapabilities, TokEnv, TokRxInfo, TokTrie,
};
use llguidance::{Matcher, ParserFactory};

use super::constraint::{GrammarState, message};
use super::source::source;
use super::{Grammar, GrammarError};
use crate::tokenizer::Tokenizer;

/// Bytes of stack for compiling a grammar, which is recursive.
const STACK: usize = 256 << 20;
/// Compiled grammars that are kept for later requests.
const KEPT: usize = 32;
/// Bytes of the longest token that a grammar can use; the trie has no room for longer ones.
const TOKEN_BYTES_MAX: usize = 512;
/// The grammars of an engine. The vocabulary is prepared when the first grammar is used.
pub(crate) struct Grammars {
    tokenizer: Tokenizer,
    compiler: OnceLock<Result<Arc<Compiler>, String>>,
}

struct Compiler {
    tokenizer: Tokenizer,
    factory: ParserFactory,
    /// Compiled grammars in their first state, the latest one last.
    kept: Mutex<Vec<(Grammar, Compiled)>>,
}

/// A compiled grammar in its first state.
struct Compiled {
    matcher: Matcher,
    ignored: Arc<[String]>,
}

impl Compiled {
    /// A copy. Requests share nothing that changes, so that a failure of one concerns no other.
    fn copy(&self) -> Compiled {
        Compiled { matcher: self.matcher.deep_clone(), ignored: Arc::clone(&self.ignored) }
    }
}

/// A constraint that follows a grammar.
pub(crate) struct Followed {
    pub(crate) constraint: Box<dyn Constraint>,
    /// Keywords of its schemas that have no effect.
    pub(crate) ignored: Arc<[String]>,
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
    pub(crate) fn constraint(&self, grammar: &Grammar) -> Result<Followed, GrammarError> {
        let refused = |reason| GrammarError::Refused { grammar: grammar.to_string(), reason };
        let compiler = self.compiler.get_or_init(|| {
            let tokenizer = self.tokenizer.clone();
            let made = run_on_stack("vocabulary", STACK, move || Compiler::new(&tokenizer));
            made.map_err(|error| error.to_string()).flatten().map(Arc::new)
        });
        let compiler = compiler.as_ref().map_err(|reason| refused(reason.clone()))?;
        let compiled = match compiler.kept(grammar) {
            Some(compiled) => compiled,
            None => {
                let (compiling, own) = (Arc::clone(compiler), grammar.clone());
                let made = run_on_stack("grammar", STACK, move || compiling.compile(&own));
                compiler.keep(grammar, made.map_err(|error| refused(error.to_string()))??)
            }
        };
        let Compiled { matcher, ignored } = compiled;
        Ok(Followed { constraint: Box::new(GrammarState::new(matcher)), ignored })
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
        Ok(Compiler { tokenizer: tokenizer.clone(), factory, kept: Mutex::default() })
    }

    fn compile(&self, grammar: &Grammar) -> Result<Compiled, GrammarError> {
        let refused = |reason| GrammarError::Refused { grammar: grammar.to_string(), reason };
        let source = source(grammar, &self.tokenizer)?;
        let matcher = Matcher::new(self.factory.create_parser(source.grammar));
        match matcher.get_error() {
            Some(error) => Err(refused(message(&error))),
            None => Ok(Compiled { matcher, ignored: source.ignored.into() }),
        }
    }

    /// A copy of a compiled grammar.
    fn kept(&self, grammar: &Grammar) -> Option<Compiled> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let at = kept.iter().position(|(known, _)| known == grammar)?;
        let latest = kept.remove(at);
        let compiled = latest.1.copy();
        kept.push(latest);
        Some(compiled)
    }

    fn keep(&self, grammar: &Grammar, compiled: Compiled) -> Compiled {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() == KEPT {
            kept.remove(0);
        }
        kept.push((grammar.clone(), compiled.copy()));
        compiled
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
