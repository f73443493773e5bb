//! The blocks of a template, and the calls to insert into them.

use minijinja::machinery::Token;

use super::{Insertion, Tag};
use crate::chat::error::ChatError;
use crate::chat::names::{BOUND, KEPT, STEP};

/// Deepest nesting of blocks, counting each `elif`; the deepest published has 15.
const NESTING_MAX: usize = 64;

/// An open block.
struct Block {
    kind: Kind,
    /// Levels that it adds to the nesting.
    levels: usize,
    /// Index of the insertions that count a pass, for loops and macros.
    steps: Vec<usize>,
    /// Work and bytes of text of one pass, without those of inner loops.
    work: u64,
    bytes: usize,
    /// Work of the opening tag.
    tag_work: u64,
    /// Sign of the opening tag's closing delimiter.
    sign: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Template,
    If,
    For,
    Macro,
    Set,
    Filter,
    With,
}

/// Follows the blocks of a template.
pub(super) struct Blocks<'a> {
    source: &'a str,
    open: Vec<Block>,
    insertions: Vec<Insertion>,
    work: u64,
}

impl Block {
    fn new(kind: Kind, sign: &str) -> Self {
        let (steps, sign) = (Vec::new(), sign.to_owned());
        Self { kind, levels: 1, steps, work: 0, bytes: 0, tag_work: 0, sign }
    }
}

impl<'a> Blocks<'a> {
    pub(super) fn new(source: &'a str) -> Self {
        let open = vec![Block::new(Kind::Template, "")];
        Self { source, open, insertions: Vec::new(), work: 0 }
    }

    /// Counts text that the innermost loop or macro writes.
    pub(super) fn emit(&mut self, bytes: usize) {
        if let Some(block) = self.repeated() {
            block.bytes += bytes;
        }
    }

    /// Counts work of the innermost loop or macro.
    pub(super) fn add_work(&mut self, work: u64) {
        self.work += work;
        if let Some(block) = self.repeated() {
            block.work += work;
        }
    }

    fn repeated(&mut self) -> Option<&mut Block> {
        self.open.iter_mut().rev().find(|block| matches!(block.kind, Kind::For | Kind::Macro))
    }

    fn insert(&mut self, at: usize, text: impl Into<String>) -> usize {
        self.insertions.push(Insertion { at, replaced: 0, text: text.into(), rank: 0 });
        self.insertions.len() - 1
    }

    /// Adds insertions of the operators of a tag.
    pub(super) fn insert_all(&mut self, all: Vec<Insertion>) {
        self.insertions.extend(all);
    }

    /// Follows a statement.
    pub(super) fn statement(&mut self, tag: &Tag<'_>) -> Result<(), ChatError> {
        match tag.ident(0).unwrap_or_default() {
            "if" => self.open(Kind::If, tag),
            "elif" => {
                if let Some(block) = self.open.last_mut() {
                    block.levels += 1;
                }
                self.check_nesting(tag)
            }
            "else" | "break" | "continue" => Ok(()),
            "for" => self.open_loop(tag),
            "macro" => self.open_macro(tag),
            "set" => self.set(tag),
            "filter" => self.open(Kind::Filter, tag),
            "with" => self.open_with(tag),
            "call" => self.open_macro(tag),
            "endif" | "endfor" | "endmacro" | "endset" | "endfilter" | "endwith" | "endcall" => {
                self.close();
                Ok(())
            }
            name => Err(ChatError::too_complex(format!("it uses the tag '{name}'"), tag.line)),
        }
    }

    fn open(&mut self, kind: Kind, tag: &Tag<'_>) -> Result<(), ChatError> {
        self.open.push(Block::new(kind, tag.sign));
        self.check_nesting(tag)
    }

    fn check_nesting(&self, tag: &Tag<'_>) -> Result<(), ChatError> {
        let levels: usize = self.open.iter().map(|block| block.levels).sum();
        if levels > NESTING_MAX {
            let what = format!("blocks are nested more than {NESTING_MAX} deep");
            return Err(ChatError::too_complex(what, tag.line));
        }
        Ok(())
    }

    fn open_loop(&mut self, tag: &Tag<'_>) -> Result<(), ChatError> {
        let mut last = tag.tokens.len().saturating_sub(1);
        if tag.ident(last) == Some("recursive") {
            last -= 1;
        }
        self.open(Kind::For, tag)?;
        let mut steps = Vec::new();
        // `for x in y if condition` evaluates the condition for all items before the first pass.
        if let Some(index) = tag.find(1, |token| matches!(token, Token::Ident("if"))) {
            steps.push(self.insert(tag.end_of(index), ""));
            self.insert(tag.end_of(last), ")");
        }
        steps.push(self.insert(tag.end, ""));
        if let Some(block) = self.open.last_mut() {
            block.steps = steps;
            block.tag_work = tag.work();
        }
        Ok(())
    }

    /// Measures the values of the variables of `{% with name = value, … %}`.
    fn open_with(&mut self, tag: &Tag<'_>) -> Result<(), ChatError> {
        self.open(Kind::With, tag)?;
        let mut from = 1;
        while let Some(assign) = tag.find(from, |token| matches!(token, Token::Assign)) {
            let next = tag.find(assign, |token| matches!(token, Token::Comma));
            let last = next.unwrap_or(tag.tokens.len()).saturating_sub(1);
            self.insert(tag.end_of(assign), "(");
            self.insert(tag.end_of(last), format!(")|{BOUND}"));
            from = last + 1;
        }
        Ok(())
    }

    /// Opens a macro, or the body of `{% call(names) macro(…) %}`, whose names are in the first brackets.
    fn open_macro(&mut self, tag: &Tag<'_>) -> Result<(), ChatError> {
        self.open(Kind::Macro, tag)?;
        let has_names = tag.ident(0) == Some("macro")
            || matches!(tag.tokens.get(1), Some((Token::ParenOpen, _)));
        let mut depth = 0;
        let mut measured = String::new();
        for (index, (token, _)) in tag.tokens.iter().enumerate() {
            match token {
                Token::ParenOpen | Token::BracketOpen | Token::BraceOpen => depth += 1,
                Token::ParenClose | Token::BracketClose | Token::BraceClose => depth -= 1,
                _ => {}
            }
            if depth == 0 && matches!(token, Token::ParenClose) || !has_names {
                break;
            }
            let starts = depth == 1 && matches!(token, Token::ParenOpen | Token::Comma);
            if let Some(name) = tag.ident(index + 1).filter(|_| starts) {
                measured.push_str(&format!("{{%set {name}={name}|{BOUND} {}%}}", tag.sign));
            }
        }
        let steps = vec![self.insert(tag.end, "")];
        self.insert(tag.end, measured);
        if let Some(block) = self.open.last_mut() {
            block.steps = steps;
        }
        Ok(())
    }

    fn set(&mut self, tag: &Tag<'_>) -> Result<(), ChatError> {
        let Some(index) = tag.find(1, |token| matches!(token, Token::Assign)) else {
            return self.open(Kind::Set, tag);
        };
        let is_attribute = tag.tokens[..index].iter().any(|(t, _)| matches!(t, Token::Dot));
        let filter = if is_attribute { KEPT } else { BOUND };
        self.insert(tag.end_of(index), "(");
        self.insert(tag.end_of(tag.tokens.len().saturating_sub(1)), format!(")|{filter}"));
        Ok(())
    }

    fn close(&mut self) {
        // The parser reports an end without a start.
        if self.open.len() == 1 {
            return;
        }
        let Some(block) = self.open.pop() else { return };
        let call = format!("{STEP}({},{})", block.work, block.bytes);
        let (of_body, of_condition) = match &block.steps[..] {
            [condition, body] => (Some(*body), Some(*condition)),
            [body] => (Some(*body), None),
            _ => (None, None),
        };
        if let Some(index) = of_condition {
            self.insertions[index].text = format!(" {STEP}({},0) and (", block.tag_work);
        }
        if let Some(index) = of_body {
            let close = &block.sign;
            self.insertions[index].text = format!("{{%set lapwing_={call} {close}%}}");
        }
    }

    /// The source with the calls, and the work of all tags.
    pub(super) fn finish(mut self) -> (String, u64) {
        while self.open.len() > 1 {
            self.close();
        }
        self.insertions.sort_by_key(|insertion| (insertion.at, insertion.rank));
        let mut source = String::with_capacity(self.source.len() * 2);
        let mut done = 0;
        for Insertion { at, replaced, text, .. } in &self.insertions {
            source.push_str(self.source.get(done..*at).unwrap_or_default());
            source.push_str(text);
            done = *at + replaced;
        }
        source.push_str(self.source.get(done..).unwrap_or_default());
        (source, self.work)
    }
}
