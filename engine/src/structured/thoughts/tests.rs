use lapwing_actors::sample::Constraint;

use super::*;
use crate::tokenizer::{TokenKind, Vocabulary};

const TAGS: ThoughtTags = ThoughtTags { open: "<think>", close: "</think>" };

/// A vocabulary of these tokens besides all bytes.
fn tokenizer(more: &[(&str, TokenKind)]) -> Tokenizer {
    let mut vocabulary = Vocabulary { model: "llama".into(), ..Vocabulary::default() };
    let mut add = |text: &str, kind| {
        vocabulary.tokens.push(text.into());
        vocabulary.kinds.push(kind);
        vocabulary.scores.push(0.0);
    };
    add("<unk>", TokenKind::Unknown);
    add("<s>", TokenKind::Control);
    add("</s>", TokenKind::Control);
    (0..=255).for_each(|byte| add(&format!("<0x{byte:02X}>"), TokenKind::Byte));
    more.iter().for_each(|(text, kind)| add(text, *kind));
    vocabulary.roles.eos = Some(2);
    vocabulary.add_space_prefix = Some(false);
    Tokenizer::new(vocabulary).expect("a tokenizer")
}

/// Allows one text.
#[derive(Clone, Debug)]
struct Only(Vec<u32>);

impl Constraint for Only {
    fn allowed(&mut self) -> Result<TokenMask, ConstraintError> {
        Ok(self.0.first().copied().into_iter().collect())
    }

    fn accept(&mut self, id: u32) -> Result<Accepted, ConstraintError> {
        assert_eq!(self.0.remove(0), id);
        Ok(if self.0.is_empty() { Accepted::Complete } else { Accepted::Open })
    }

    fn fork(&self) -> Box<dyn Constraint> {
        Box::new(self.clone())
    }
}

/// The state with a text in braces as the only answer.
fn thinking(tokenizer: &Tokenizer, start: AnswerStart, most: Option<usize>) -> ThoughtsFirst {
    let answer = Box::new(Only(tokenizer.encode("{}", Special::Plain, false)));
    let tokens = ThoughtTokens::new(TAGS, tokenizer).expect("tags");
    ThoughtsFirst::new(Arc::new(tokens), Some(answer), start, most)
}

/// Accepts the tokens of a text, each of which must be allowed; what may follow the last one.
fn accept(state: &mut ThoughtsFirst, tokenizer: &Tokenizer, text: &str) -> Accepted {
    let ids = tokenizer.encode(text, Special::Parse, false);
    let mut accepted = Accepted::Open;
    for id in ids {
        assert!(state.allowed().expect("a mask").contains(id), "{id} of {text:?} in {state:?}");
        accepted = state.accept(id).expect("it is allowed");
    }
    accepted
}

fn allows(state: &mut ThoughtsFirst, tokenizer: &Tokenizer, text: &str) -> bool {
    let ids = tokenizer.encode(text, Special::Parse, false);
    let [id] = ids[..] else { panic!("{text:?} is several tokens") };
    state.allowed().expect("a mask").contains(id)
}

#[test]
fn the_answer_begins_after_the_thoughts_that_the_prompt_opens() {
    let control = [("<think>", TokenKind::Control), ("</think>", TokenKind::Control)];
    for more in [&control[..], &[]] {
        let tokenizer = tokenizer(more);
        let mut state = thinking(&tokenizer, AnswerStart::Thinking, None);
        accept(&mut state, &tokenizer, "Hm } < </");
        assert!(
            !state.allowed().expect("a mask").contains(2),
            "the end token would end the answer"
        );
        accept(&mut state, &tokenizer, "</think>");
        assert!(!allows(&mut state, &tokenizer, "a"));
        assert_eq!(accept(&mut state, &tokenizer, "{}"), Accepted::Complete);
    }
}

#[test]
fn thoughts_that_are_too_long_are_closed() {
    let tokenizer = tokenizer(&[]);
    let mut state = thinking(&tokenizer, AnswerStart::Thinking, Some(3));
    accept(&mut state, &tokenizer, "abc");
    assert!(!allows(&mut state, &tokenizer, "d"));
    accept(&mut state, &tokenizer, "</think>{");
    let mut none = thinking(&tokenizer, AnswerStart::Thinking, Some(0));
    assert_eq!(accept(&mut none, &tokenizer, "</think>{}"), Accepted::Complete);
}

#[test]
fn a_model_may_think_or_answer_at_once() {
    let tokenizer = tokenizer(&[]);
    for text in ["<think>a</think>{}", "{}"] {
        let mut state = thinking(&tokenizer, AnswerStart::Fresh, None);
        assert!(!allows(&mut state, &tokenizer, "a"));
        let mut fork = state.fork();
        assert_eq!(accept(&mut state, &tokenizer, text), Accepted::Complete);
        assert!(fork.allowed().expect("a mask").contains(3 + u32::from(b'{')), "it is as before");
    }
    let mut after = thinking(&tokenizer, AnswerStart::Thought, None);
    assert!(!allows(&mut after, &tokenizer, "<"));
}

#[test]
fn no_token_closes_the_thoughts_and_begins_the_answer() {
    let joined = [(">{", TokenKind::Normal), ("</think>x", TokenKind::UserDefined)];
    let tokenizer = tokenizer(&joined);
    let id = |text: &str| tokenizer.token_id(text).expect("a token");
    let mut state = thinking(&tokenizer, AnswerStart::Thinking, None);
    assert!(state.allowed().expect("a mask").contains(id(">{")), "it closes nothing here");
    assert!(!state.allowed().expect("a mask").contains(id("</think>x")));
    accept(&mut state, &tokenizer, "a</think");
    assert!(!state.allowed().expect("a mask").contains(id(">{")));
    assert!(allows(&mut state, &tokenizer, ">"));
}

#[test]
fn thoughts_are_bounded_without_a_grammar_too() {
    let tokenizer = tokenizer(&[]);
    let tokens = Arc::new(ThoughtTokens::new(TAGS, &tokenizer).expect("tags"));
    let mut state = ThoughtsFirst::new(tokens, None, AnswerStart::Fresh, Some(2));
    accept(&mut state, &tokenizer, "\n<think>ab");
    assert!(!allows(&mut state, &tokenizer, "c"));
    accept(&mut state, &tokenizer, "</think>anything <think> more than two");
}
