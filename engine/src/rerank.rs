//! Reranking: the request for it, the result, and what a model's file says of it.

mod composed;
mod error;

use lapwing_kernels::cpu::HeadWeights;
use lapwing_kernels::model::{Head, HeadInput};
use lapwing_kernels::weights::WeightFile;

pub(crate) use composed::Composed;
pub use error::RerankError;

use crate::embedding::Pooling;
use crate::error::Error;

/// A request for the order of documents by how well they answer a query ([`Engine::rerank`](crate::Engine::rerank)).
///
/// ```
/// use lapwing::RerankRequest;
///
/// let request = RerankRequest::new("What floats?", ["a small boat", "a bowl of rice"]);
/// assert_eq!(request.documents.len(), 2);
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct RerankRequest {
    /// The query. Control tokens in it are ordinary text.
    pub query: String,
    /// The documents. Control tokens in them are ordinary text.
    pub documents: Vec<String>,
    /// Name of the client that sends it, as in [`Request::client`](crate::Request::client).
    pub client: Option<String>,
    /// Record this request when the recorder's scope is marked requests only.
    pub traced: bool,
}

impl RerankRequest {
    /// The order of `documents` for `query`.
    pub fn new(
        query: impl Into<String>,
        documents: impl IntoIterator<Item = impl Into<String>>,
    ) -> RerankRequest {
        let documents = documents.into_iter().map(Into::into).collect();
        RerankRequest { query: query.into(), documents, ..RerankRequest::default() }
    }

    /// Names the client that sends the request.
    #[must_use]
    pub fn client(mut self, name: impl Into<String>) -> RerankRequest {
        self.client = Some(name.into());
        self
    }

    /// Marks the request for a recorder whose scope is marked requests only.
    #[must_use]
    pub fn traced(mut self) -> RerankRequest {
        self.traced = true;
        self
    }
}

/// How well documents answer a query.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Ranking {
    /// The documents, best first; of equal ones, the first of the request first.
    pub documents: Vec<RankedDocument>,
    /// Tokens of all pairs of query and document.
    pub tokens: usize,
}

/// A document of a [`Ranking`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct RankedDocument {
    /// Its place among the documents of the request.
    pub index: usize,
    /// How well it answers the query: the first output of the model's head, as it is. It is a probability if the outputs are
    /// (`qwen3`); otherwise any number, larger for a better document, whose sigmoid many authors call the relevance.
    pub score: f32,
    /// All outputs of the head; one, unless the file says otherwise ([`ModelConfig::rank_labels`](crate::ModelConfig)).
    pub outputs: Vec<f32>,
    /// Tokens of the pair of query and document.
    pub tokens: usize,
}

impl Ranking {
    /// Adds a document.
    pub(crate) fn push(&mut self, outputs: Vec<f32>, tokens: usize) {
        let score = outputs.first().copied().unwrap_or(f32::NEG_INFINITY);
        let index = self.documents.len();
        self.documents.push(RankedDocument { index, score, outputs, tokens });
        self.tokens += tokens;
    }

    /// Puts the best document first.
    pub(crate) fn sort(&mut self) {
        self.documents.sort_by(|a, b| b.score.total_cmp(&a.score));
    }
}

/// What a reranker's file says: how a query and a document become one text, and how this becomes a score.
#[derive(Debug)]
pub(crate) struct Reranker {
    /// The text of a pair, if it is not made of the texts and their ends alone.
    pub(crate) composed: Option<Composed>,
    pub(crate) pooling: Pooling,
    pub(crate) head: HeadWeights,
}

impl Reranker {
    /// That of a file, if its model has a head for it.
    ///
    /// # Errors
    /// When the head cannot be read, or the template of pairs lacks a part.
    pub(crate) fn read(head: Option<&Head>, file: &WeightFile) -> Result<Option<Reranker>, Error> {
        let Some(head) = head else { return Ok(None) };
        let weights = HeadWeights::read(head, file).map_err(RerankError::from)?;
        let pooling = match head.input {
            HeadInput::First => Pooling::Cls,
            HeadInput::Mean => Pooling::Mean,
            HeadInput::Last => Pooling::Last,
        };
        let composed = Composed::from_metadata(file.metadata())?;
        Ok(Some(Reranker { composed, pooling, head: weights }))
    }
}
