//! Converts grammars of llama.cpp's format GBNF to Lark.
//!
//! A rule that does not contain itself, directly or through others, is written as one regular expression, so that
//! it derives exactly the same texts. In the other rules, each longest sequence of such parts becomes one lexeme.

use std::collections::HashMap;
use std::fmt::Write;

use super::GrammarError;

mod ast;
mod parse;
mod reader;
mod regular;
#[cfg(test)]
mod tests;

use ast::{Expr, Place, Rule};
use regular::Regular;

/// Rules of the largest grammar.
const RULES_MAX: usize = 2000;
/// Bytes of the longest expression of a rule, after the rules that it names are written out.
const EXPRESSION_BYTES_MAX: usize = 256 << 10;

/// Converts a grammar.
///
/// # Errors
/// [`GrammarError::Gbnf`] with the place of the first error.
pub(super) fn to_lark(text: &str) -> Result<String, GrammarError> {
    let rules = parse::rules(text)?;
    let first = Place { line: 1, column: 1 };
    if rules.len() > RULES_MAX {
        return Err(first.error(format!("it has more than {RULES_MAX} rules")));
    }
    let mut numbers = HashMap::new();
    for (number, rule) in rules.iter().enumerate() {
        if numbers.insert(rule.name.as_str(), number).is_some() {
            return Err(rule.place.error(format!("rule '{}' is defined twice", rule.name)));
        }
    }
    for rule in &rules {
        check_names(&rule.body, &numbers)?;
    }
    let Some(root) = numbers.get("root") else {
        return Err(first.error("there is no rule 'root'".to_owned()));
    };
    let grammar =
        Lark { regular: Regular::new(&rules, &numbers), rules: &rules, numbers: &numbers };
    grammar.write(*root)
}

/// Checks that every named rule exists.
fn check_names(expr: &Expr, numbers: &HashMap<&str, usize>) -> Result<(), GrammarError> {
    match expr {
        Expr::Rule(name, place) if !numbers.contains_key(name.as_str()) => {
            Err(place.error(format!("there is no rule '{name}'")))
        }
        Expr::Sequence(parts) | Expr::Choice(parts) => {
            parts.iter().try_for_each(|part| check_names(part, numbers))
        }
        Expr::Repeat(part, ..) => check_names(part, numbers),
        Expr::Text(_) | Expr::Class { .. } | Expr::Any | Expr::Rule(..) => Ok(()),
    }
}

/// A grammar that is being written as Lark.
struct Lark<'a> {
    rules: &'a [Rule],
    numbers: &'a HashMap<&'a str, usize>,
    regular: Regular<'a>,
}

impl Lark<'_> {
    fn write(&self, root: usize) -> Result<String, GrammarError> {
        let mut out = String::new();
        if self.regular.is_regular(root) {
            let regex = self.regex(&self.rules[root].body, self.rules[root].place)?;
            let _ = writeln!(out, "start: /{regex}/");
            return Ok(out);
        }
        let _ = writeln!(out, "start: r{root}");
        for (number, rule) in self.rules.iter().enumerate() {
            if self.regular.is_regular(number) {
                continue;
            }
            let _ = write!(out, "r{number}: ");
            self.expression(&rule.body, rule.place, &mut out)?;
            out.push('\n');
        }
        Ok(out)
    }

    /// Writes an expression of a rule.
    fn expression(&self, expr: &Expr, at: Place, out: &mut String) -> Result<(), GrammarError> {
        if self.regular.holds(expr) {
            return self.lexeme(std::slice::from_ref(expr), at, out);
        }
        match expr {
            Expr::Sequence(parts) => {
                let mut rest = &parts[..];
                while !rest.is_empty() {
                    let run = rest.iter().take_while(|part| self.regular.holds(part)).count();
                    let taken = run.max(1);
                    match run {
                        0 => self.expression(&rest[0], at, out)?,
                        _ => self.lexeme(&rest[..run], at, out)?,
                    }
                    out.push(' ');
                    rest = &rest[taken..];
                }
            }
            Expr::Choice(parts) => {
                out.push('(');
                let filled = parts.iter().filter(|part| !part.is_empty());
                for (number, part) in filled.enumerate() {
                    out.push_str(if number > 0 { " | " } else { "" });
                    self.expression(part, at, out)?;
                }
                out.push(')');
                out.push_str(if parts.iter().any(Expr::is_empty) { "?" } else { "" });
            }
            Expr::Repeat(part, least, most) => {
                out.push('(');
                self.expression(part, at, out)?;
                out.push(')');
                match (least, most) {
                    (0, Some(1)) => out.push('?'),
                    (0, None) => out.push('*'),
                    (1, None) => out.push('+'),
                    (least, Some(most)) => _ = write!(out, "{{{least},{most}}}"),
                    (least, None) => _ = write!(out, "{{{least},}}"),
                }
            }
            Expr::Rule(name, _) => _ = write!(out, "r{}", self.numbers[name.as_str()]),
            Expr::Text(_) | Expr::Class { .. } | Expr::Any => {}
        }
        Ok(())
    }

    /// Writes regular parts as one lexeme.
    fn lexeme(&self, parts: &[Expr], at: Place, out: &mut String) -> Result<(), GrammarError> {
        let mut regex = String::new();
        for part in parts {
            regex.push_str(&self.regex(part, at)?);
        }
        match regex.is_empty() {
            true => out.push_str("\"\""),
            false => _ = write!(out, "/{regex}/"),
        }
        Ok(())
    }

    fn regex(&self, expr: &Expr, at: Place) -> Result<String, GrammarError> {
        let mut regex = String::new();
        match self.regular.write(expr, EXPRESSION_BYTES_MAX, &mut regex) {
            true => Ok(regex),
            false => Err(at.error(format!(
                "with the rules that it names written out, the rule has more than {EXPRESSION_BYTES_MAX} bytes"
            ))),
        }
    }
}
