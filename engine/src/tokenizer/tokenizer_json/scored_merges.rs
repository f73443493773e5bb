//! Merges for pieces that are joined by their scores: the library ranks pairs, and Lapwing joins the pair whose joined text has
//! the best score, of equal ones the left one.

use std::cmp::Reverse;

use super::error::Inexpressible;
use super::ties::{self, Merge};
use crate::tokenizer::Inner;
use crate::tokenizer::sentence_pieces::SPACE;
use crate::tokenizer::special_tokens::{Control, Fragment};

/// All merges, best first.
///
/// # Errors
/// [`Inexpressible::Ties`] if no ranks have the order of equal scores, [`Inexpressible::NoChar`] if a character that is joined
/// is not a token.
pub(super) fn scored_merges(inner: &Inner) -> Result<Vec<[&str; 2]>, Inexpressible> {
    let table = &inner.table;
    let mut scored: Vec<(f32, u32)> = (0..table.len())
        .filter(|id| !table.traits(*id).byte && !is_cut_out(inner, table.text(*id)))
        .map(|id| (table.score(id), id))
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let mut merges = Vec::new();
    for level in scored.chunk_by(|a, b| a.0 == b.0) {
        let mut of_level = Vec::new();
        for (_, id) in level {
            splits(inner, *id, &mut of_level)?;
        }
        merges
            .extend(ties::in_order(table, of_level)?.iter().map(|merge| [merge.left, merge.right]));
    }
    Ok(merges)
}

/// Appends the pairs that are joined to a piece. The longest left part stands first.
fn splits<'a>(inner: &'a Inner, id: u32, merges: &mut Vec<Merge<'a>>) -> Result<(), Inexpressible> {
    let table = &inner.table;
    let text = table.text(id);
    let is_symbol = |part: &str| table.id(part).is_some_and(|id| !table.traits(id).byte);
    let is_lone_char = |part: &str| part.chars().nth(1).is_none() && !is_symbol(part);
    let borders = text.char_indices().skip(1).map(|(at, _)| at);
    let mut pairs: Vec<Merge<'a>> = borders.map(|at| Merge::of(text, at)).collect();
    pairs.sort_by_key(|merge| Reverse(merge.left.len()));
    for merge in pairs {
        let (left, right) = (merge.left, merge.right);
        if is_symbol(left) && is_symbol(right) {
            merges.push(merge);
        } else if (is_lone_char(left) || is_symbol(left))
            && (is_lone_char(right) || is_symbol(right))
        {
            let char = if is_lone_char(left) { left } else { right };
            return Err(Inexpressible::NoChar { piece: text.to_owned(), char: char.to_owned() });
        }
    }
    Ok(())
}

/// Whether a piece never arises from text, because it contains a special token, which is cut out before.
fn is_cut_out(inner: &Inner, text: &str) -> bool {
    text.split(SPACE).filter(|part| !part.is_empty()).any(|part| {
        let fragments = inner.specials.partition(part, Control::Everywhere);
        fragments.iter().any(|fragment| matches!(fragment, Fragment::Token(_)))
    })
}
