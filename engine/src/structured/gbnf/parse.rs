//! Reads the rules of a GBNF grammar.

use super::ast::{Expr, Rule};
use super::reader::Reader;
use crate::structured::GrammarError;

/// Levels of the deepest groups.
const DEPTH_MAX: usize = 100;
/// Most repetitions of one part by operators behind each other.
const OPERATORS_MAX: usize = 8;
/// The largest number of repetitions.
const REPEAT_MAX: u32 = 100_000;

/// The rules of a grammar, in their order.
pub(super) fn rules(text: &str) -> Result<Vec<Rule>, GrammarError> {
    let mut reader = Reader::new(text);
    let mut rules = Vec::new();
    reader.skip_space(true);
    while reader.peek().is_some() {
        let place = reader.place();
        let name = name(&mut reader);
        if name.is_empty() {
            return Err(reader.expected("the name of a rule"));
        }
        reader.skip_space(false);
        for char in "::=".chars() {
            if !reader.take(char) {
                return Err(reader.expected("'::='"));
            }
        }
        reader.skip_space(true);
        let body = choice(&mut reader, 0)?;
        if !matches!(reader.peek(), None | Some('\n' | '\r')) {
            return Err(reader.expected("an operator, a part of the rule, or the end of the line"));
        }
        rules.push(Rule { name, place, body });
        reader.skip_space(true);
    }
    Ok(rules)
}

fn is_name(char: char) -> bool {
    char.is_ascii_alphanumeric() || char == '-' || char == '_'
}

fn name(reader: &mut Reader<'_>) -> String {
    reader.take_while(is_name)
}

/// Alternatives, up to the end of the group or of the line.
fn choice(reader: &mut Reader<'_>, depth: usize) -> Result<Expr, GrammarError> {
    let mut parts = vec![sequence(reader, depth)?];
    while reader.take_next_alternative() {
        reader.skip_space(true);
        parts.push(sequence(reader, depth)?);
    }
    match parts.pop() {
        Some(only) if parts.is_empty() => Ok(only),
        last => {
            parts.extend(last);
            Ok(Expr::Choice(parts))
        }
    }
}

fn sequence(reader: &mut Reader<'_>, depth: usize) -> Result<Expr, GrammarError> {
    let is_group = depth > 0;
    let mut parts = Vec::new();
    loop {
        reader.skip_space(is_group);
        let Some(part) = part(reader, depth)? else { break };
        parts.push(repeated(reader, part)?);
    }
    match parts.pop() {
        Some(only) if parts.is_empty() => Ok(only),
        last => {
            parts.extend(last);
            Ok(Expr::Sequence(parts))
        }
    }
}

/// A part of a sequence; `None` at its end.
fn part(reader: &mut Reader<'_>, depth: usize) -> Result<Option<Expr>, GrammarError> {
    let at = reader.place();
    match reader.peek() {
        Some('"') => text(reader).map(Some),
        Some('[') => class(reader).map(Some),
        Some('.') => {
            reader.next();
            Ok(Some(Expr::Any))
        }
        Some('(') if depth == DEPTH_MAX => {
            Err(at.error(format!("groups are nested in more than {DEPTH_MAX} levels")))
        }
        Some('(') => {
            reader.next();
            reader.skip_space(true);
            let group = choice(reader, depth + 1)?;
            match reader.take(')') {
                true => Ok(Some(group)),
                false => Err(reader.expected("')'")),
            }
        }
        Some('<' | '!') => Err(at.error("tokens (<…>) are not supported".to_owned())),
        Some(char) if is_name(char) => Ok(Some(Expr::Rule(name(reader), at))),
        _ => Ok(None),
    }
}

fn text(reader: &mut Reader<'_>) -> Result<Expr, GrammarError> {
    let at = reader.place();
    reader.next();
    let mut text = String::new();
    while !reader.take('"') {
        if matches!(reader.peek(), None | Some('\n')) {
            return Err(at.error("the text is not closed".to_owned()));
        }
        text.push(reader.char("the text")?);
    }
    Ok(Expr::Text(text))
}

fn class(reader: &mut Reader<'_>) -> Result<Expr, GrammarError> {
    let at = reader.place();
    reader.next();
    let negated = reader.take('^');
    let mut ranges = Vec::new();
    while !reader.take(']') {
        if matches!(reader.peek(), None | Some('\n')) {
            return Err(at.error("the class is not closed".to_owned()));
        }
        let start = reader.place();
        let first = reader.char("the class")?;
        if !reader.take('-') {
            ranges.push((first, first));
        } else if reader.peek() == Some(']') {
            ranges.extend([(first, first), ('-', '-')]);
        } else {
            let last = reader.char("the class")?;
            if last < first {
                return Err(start.error("the range ends before it begins".to_owned()));
            }
            ranges.push((first, last));
        }
    }
    match ranges.is_empty() && !negated {
        true => Err(at.error("the class is empty".to_owned())),
        false if ranges.is_empty() => Ok(Expr::Any),
        false => Ok(Expr::Class { negated, ranges }),
    }
}

/// A part with the repetitions behind it.
fn repeated(reader: &mut Reader<'_>, mut part: Expr) -> Result<Expr, GrammarError> {
    for _ in 0..=OPERATORS_MAX {
        let (least, most) = match reader.peek() {
            Some('{') => counts(reader)?,
            Some(operator @ ('*' | '+' | '?')) => {
                reader.next();
                (u32::from(operator == '+'), (operator == '?').then_some(1))
            }
            _ => return Ok(part),
        };
        part = Expr::Repeat(Box::new(part), least, most);
    }
    Err(reader.place().error(format!("a part has more than {OPERATORS_MAX} repetitions")))
}

/// The numbers of `{m}`, `{m,}` and `{m,n}`.
fn counts(reader: &mut Reader<'_>) -> Result<(u32, Option<u32>), GrammarError> {
    let at = reader.place();
    reader.next();
    let least = count(reader)?.ok_or_else(|| reader.expected("a number"))?;
    let most = match reader.take(',') {
        true => count(reader)?,
        false => Some(least),
    };
    if !reader.take('}') {
        return Err(reader.expected("'}'"));
    }
    match most {
        Some(most) if most < least => Err(at.error(format!("{most} is less than {least}"))),
        most => Ok((least, most)),
    }
}

fn count(reader: &mut Reader<'_>) -> Result<Option<u32>, GrammarError> {
    reader.skip_space(false);
    let at = reader.place();
    let digits = reader.take_while(|char| char.is_ascii_digit());
    reader.skip_space(false);
    if digits.is_empty() {
        return Ok(None);
    }
    match digits.parse() {
        Ok(count) if count <= REPEAT_MAX => Ok(Some(count)),
        _ => Err(at.error(format!("at most {REPEAT_MAX} repetitions are supported"))),
    }
}
