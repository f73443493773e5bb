//! Rules that do not contain themselves, written as regular expressions.

use std::collections::HashMap;
use std::fmt::Write;

use super::ast::{Expr, Rule};
use crate::structured::regex::push_char;

/// Which rules are regular: none of the rules that they name, directly or through others, names itself.
pub(super) struct Regular<'a> {
    rules: &'a [Rule],
    numbers: &'a HashMap<&'a str, usize>,
    is_regular: Vec<bool>,
}

impl<'a> Regular<'a> {
    pub(super) fn new(rules: &'a [Rule], numbers: &'a HashMap<&'a str, usize>) -> Regular<'a> {
        // Removes rules that name only regular ones, until there are none: those that stay are recursive, or
        // name recursive ones.
        let mut named = vec![Vec::new(); rules.len()];
        let mut open = vec![0_usize; rules.len()];
        for (number, rule) in rules.iter().enumerate() {
            let mut names = Vec::new();
            references(&rule.body, numbers, &mut names);
            names.sort_unstable();
            names.dedup();
            open[number] = names.len();
            names.into_iter().for_each(|name| named[name].push(number));
        }
        let mut is_regular = vec![false; rules.len()];
        let mut ready: Vec<usize> = (0..rules.len()).filter(|rule| open[*rule] == 0).collect();
        while let Some(rule) = ready.pop() {
            is_regular[rule] = true;
            for by in &named[rule] {
                open[*by] -= 1;
                if open[*by] == 0 {
                    ready.push(*by);
                }
            }
        }
        Regular { rules, numbers, is_regular }
    }

    pub(super) fn is_regular(&self, rule: usize) -> bool {
        self.is_regular[rule]
    }

    /// Whether an expression names regular rules only.
    pub(super) fn holds(&self, expr: &Expr) -> bool {
        match expr {
            Expr::Text(_) | Expr::Class { .. } | Expr::Any => true,
            Expr::Rule(name, _) => self.is_regular[self.numbers[name.as_str()]],
            Expr::Sequence(parts) | Expr::Choice(parts) => {
                parts.iter().all(|part| self.holds(part))
            }
            Expr::Repeat(part, ..) => self.holds(part),
        }
    }

    /// Appends a regular expression of at most `bytes_max` bytes; `false` if it would be longer.
    pub(super) fn write(&self, expr: &Expr, bytes_max: usize, out: &mut String) -> bool {
        if out.len() > bytes_max {
            return false;
        }
        let write = |expr: &Expr, out: &mut String| self.write(expr, bytes_max, out);
        let fits = match expr {
            Expr::Text(text) => {
                text.chars().for_each(|char| push_char(out, char));
                true
            }
            Expr::Class { negated, ranges } => {
                write_class(*negated, ranges, out);
                true
            }
            Expr::Any => {
                out.push_str("(?s:.)");
                true
            }
            Expr::Rule(name, _) => {
                out.push_str("(?:");
                let fits = write(&self.rules[self.numbers[name.as_str()]].body, out);
                out.push(')');
                fits
            }
            Expr::Sequence(parts) => parts.iter().all(|part| write(part, out)),
            Expr::Choice(parts) => {
                out.push_str("(?:");
                let mut parts = parts.iter().enumerate();
                let fits = parts.all(|(number, part)| {
                    out.push_str(if number > 0 { "|" } else { "" });
                    write(part, out)
                });
                out.push(')');
                fits
            }
            Expr::Repeat(part, least, most) => {
                out.push_str("(?:");
                let fits = write(part, out);
                match most {
                    Some(most) => _ = write!(out, "){{{least},{most}}}"),
                    None => _ = write!(out, "){{{least},}}"),
                }
                fits
            }
        };
        fits && out.len() <= bytes_max
    }
}

fn write_class(negated: bool, ranges: &[(char, char)], out: &mut String) {
    out.push_str(if negated { "[^" } else { "[" });
    for (first, last) in ranges {
        push_char(out, *first);
        if first != last {
            out.push('-');
            push_char(out, *last);
        }
    }
    out.push(']');
}

/// The numbers of the rules that an expression names.
fn references(expr: &Expr, numbers: &HashMap<&str, usize>, out: &mut Vec<usize>) {
    match expr {
        Expr::Rule(name, _) => out.extend(numbers.get(name.as_str())),
        Expr::Sequence(parts) | Expr::Choice(parts) => {
            parts.iter().for_each(|part| references(part, numbers, out));
        }
        Expr::Repeat(part, ..) => references(part, numbers, out),
        Expr::Text(_) | Expr::Class { .. } | Expr::Any => {}
    }
}
