//! The text of a query and a document, as a file's template composes it.

use lapwing_kernels::weights::Metadata;

use super::error::RerankError;
use crate::tokenizer::Tokenizer;

/// Key of the template.
const KEY: &str = "tokenizer.chat_template.rerank";
const QUERY: &str = "{query}";
const DOCUMENT: &str = "{document}";

/// A template of a pair: texts, and the places of the query and of the document. It is no Jinja template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Composed {
    pieces: Vec<Piece>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Own(String),
    Query,
    Document,
}

impl Composed {
    /// That of a file, if it has one.
    ///
    /// # Errors
    /// When the key has the wrong type, or the template has no place for one of the texts.
    pub(crate) fn from_metadata(metadata: &Metadata) -> Result<Option<Composed>, RerankError> {
        metadata.opt_str(KEY)?.map(Composed::new).transpose()
    }

    fn new(template: &str) -> Result<Composed, RerankError> {
        let mut pieces = Vec::new();
        let mut rest = template;
        let next = |rest: &str| {
            let places = [(QUERY, Piece::Query), (DOCUMENT, Piece::Document)];
            let found = places.map(|(place, piece)| Some((rest.find(place)?, place, piece)));
            found.into_iter().flatten().min_by_key(|found| found.0)
        };
        while let Some((at, place, piece)) = next(rest) {
            pieces.extend([Piece::Own(rest[..at].to_owned()), piece]);
            rest = &rest[at + place.len()..];
        }
        pieces.push(Piece::Own(rest.to_owned()));
        for (piece, place) in [(Piece::Query, QUERY), (Piece::Document, DOCUMENT)] {
            if !pieces.contains(&piece) {
                return Err(RerankError::Template { key: KEY, place });
            }
        }
        Ok(Composed { pieces })
    }

    /// Token ids of a pair. The template's control tokens count; those in the texts are text.
    pub(crate) fn ids(&self, tokenizer: &Tokenizer, query: &str, document: &str) -> Vec<u32> {
        let (mut text, mut foreign) = (String::new(), Vec::new());
        for piece in &self.pieces {
            let start = text.len();
            match piece {
                Piece::Own(own) => text.push_str(own),
                Piece::Query => text.push_str(query),
                Piece::Document => text.push_str(document),
            }
            if !matches!(piece, Piece::Own(_)) {
                foreign.extend(start..text.len());
            }
        }
        tokenizer.encode_composed(&text, &foreign)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_found_in_any_order_and_texts_are_not_searched() {
        let own = |text: &str| Piece::Own(text.to_owned());
        let composed = Composed::new("d: {document}\nq: {query}!").expect("both places");
        let wanted = [own("d: "), Piece::Document, own("\nq: "), Piece::Query, own("!")];
        assert_eq!(composed.pieces, wanted);
        let twice = Composed::new("{query}{query}{document}").expect("both places");
        assert_eq!(twice.pieces.iter().filter(|piece| **piece == Piece::Query).count(), 2);
    }

    #[test]
    fn a_template_without_a_place_is_refused() {
        for (template, missing) in [("{query} only", "{document}"), ("{document}", "{query}")] {
            let error = Composed::new(template).expect_err("a place is missing").to_string();
            assert!(error.contains(missing), "{error}");
        }
    }
}
