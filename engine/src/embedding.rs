//! Embeddings: the request for one, and the result.

use std::sync::Arc;

use lapwing_kernels::cpu::HeadWeights;
use lapwing_traces::RequestTimes;

use crate::request::Prompt;

/// How the hidden states of a text's tokens become its embedding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Pooling {
    /// Not at all: the embedding has one vector for each token.
    None,
    /// The mean over all tokens.
    Mean,
    /// The vector of the first token. With the causal attention of a decoder it depends on that token alone,
    /// so only an encoder gives a useful result.
    Cls,
    /// The vector of the last token, which has seen all others.
    Last,
}

impl Pooling {
    /// All kinds, by GGUF's number.
    pub const ALL: [Pooling; 4] = [Pooling::None, Pooling::Mean, Pooling::Cls, Pooling::Last];

    /// Name on the command line and in JSON: `none`, `mean`, `cls` or `last`.
    pub fn name(self) -> &'static str {
        match self {
            Pooling::None => "none",
            Pooling::Mean => "mean",
            Pooling::Cls => "cls",
            Pooling::Last => "last",
        }
    }

    /// Positions whose hidden states it needs, of a text of so many tokens.
    pub(crate) fn positions(self, tokens: usize) -> std::ops::Range<usize> {
        match self {
            Pooling::None | Pooling::Mean => 0..tokens,
            Pooling::Cls => 0..tokens.min(1),
            Pooling::Last => tokens.saturating_sub(1)..tokens,
        }
    }
}

/// A request for the embedding of a text ([`Engine::embed`](crate::Engine::embed)). Texts and token ids
/// convert into one.
///
/// ```
/// use lapwing::{EmbedRequest, Pooling};
///
/// let request = EmbedRequest::text("a small boat").pooling(Pooling::Last).normalized();
/// assert_ne!(request, EmbedRequest::from("a small boat"));
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct EmbedRequest {
    /// The text. In [`Prompt::Text`], too, control tokens are ordinary text here; the begin and end
    /// tokens are added if the model's file requests them.
    pub input: Prompt,
    /// How hidden states become one vector; `None` for what the model's file says, or the mean if it
    /// says nothing.
    pub pooling: Option<Pooling>,
    /// Whether each vector is divided by its Euclidean length.
    pub normalized: bool,
    /// Name of the client that sends it, as in [`Request::client`](crate::Request::client).
    pub client: Option<String>,
    /// Record this request when the recorder's scope is marked requests only.
    pub traced: bool,
}

impl EmbedRequest {
    /// The embedding of `input`, pooled as the model's file says, not normalised.
    pub fn new(input: Prompt) -> EmbedRequest {
        EmbedRequest { input, pooling: None, normalized: false, client: None, traced: false }
    }

    /// The embedding of a text.
    pub fn text(text: impl Into<String>) -> EmbedRequest {
        EmbedRequest::new(Prompt::Text(text.into()))
    }

    /// The embedding of token ids, which are used unchanged.
    pub fn ids(ids: impl Into<Vec<u32>>) -> EmbedRequest {
        EmbedRequest::new(Prompt::Ids(ids.into()))
    }

    /// Sets how hidden states become one vector.
    #[must_use]
    pub fn pooling(mut self, pooling: Pooling) -> EmbedRequest {
        self.pooling = Some(pooling);
        self
    }

    /// Divides each vector by its Euclidean length: the scalar product of two embeddings is then their
    /// cosine similarity.
    #[must_use]
    pub fn normalized(mut self) -> EmbedRequest {
        self.normalized = true;
        self
    }

    /// Names the client that sends the request.
    #[must_use]
    pub fn client(mut self, name: impl Into<String>) -> EmbedRequest {
        self.client = Some(name.into());
        self
    }

    /// Marks the request for a recorder whose scope is marked requests only.
    #[must_use]
    pub fn traced(mut self) -> EmbedRequest {
        self.traced = true;
        self
    }
}

impl From<&str> for EmbedRequest {
    fn from(text: &str) -> EmbedRequest {
        EmbedRequest::text(text)
    }
}

impl From<String> for EmbedRequest {
    fn from(text: String) -> EmbedRequest {
        EmbedRequest::text(text)
    }
}

impl From<Vec<u32>> for EmbedRequest {
    fn from(ids: Vec<u32>) -> EmbedRequest {
        EmbedRequest::ids(ids)
    }
}

/// The embedding of a text.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Embedding {
    /// The vector, of [`width`](Embedding::width) values; with [`Pooling::None`] the vectors of all
    /// tokens, `[tokens, width]`.
    pub values: Vec<f32>,
    /// Values of a vector: the model's hidden size, unless the model projects its pooled vectors.
    pub width: usize,
    /// Tokens of the text.
    pub tokens: usize,
    /// How it was pooled.
    pub pooling: Pooling,
    /// Times of its milestones; `first_token` is when the last hidden states were computed.
    pub times: RequestTimes,
}

impl Embedding {
    /// Its vectors: one, or with [`Pooling::None`] one for each token.
    pub fn vectors(&self) -> impl ExactSizeIterator<Item = &[f32]> {
        self.values.chunks_exact(self.width)
    }

    /// Cosine similarity with another embedding, from -1 to 1; 0 if one of them is all zeros. `None` if
    /// the two have different numbers of values, as embeddings of different models do, or unpooled
    /// ones.
    pub fn cosine(&self, other: &Embedding) -> Option<f32> {
        let pairs = || self.values.iter().zip(&other.values);
        let same = self.values.len() == other.values.len();
        same.then(|| {
            let dot: f64 = pairs().map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
            let lengths = length(&self.values) * length(&other.values);
            if lengths == 0.0 { 0.0 } else { (dot / lengths).clamp(-1.0, 1.0) as f32 }
        })
    }
}

/// Euclidean length.
fn length(vector: &[f32]) -> f64 {
    vector.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>().sqrt()
}

/// Pools hidden states, which arrive row by row. The sum over the rows is in their order and in f64, so
/// the result does not depend on the chunks in which they arrive.
#[derive(Debug)]
pub(crate) struct Pooler {
    pooling: Pooling,
    normalized: bool,
    width: usize,
    projection: Option<Arc<HeadWeights>>,
    sum: Vec<f64>,
    rows: usize,
    values: Vec<f32>,
}

impl Pooler {
    pub(crate) fn new(pooling: Pooling, normalized: bool, width: usize) -> Pooler {
        Pooler {
            pooling,
            normalized,
            width,
            projection: None,
            sum: Vec::new(),
            rows: 0,
            values: Vec::new(),
        }
    }

    /// Makes the embedding of one pooled vector by these products. Vectors of single tokens stay as they are.
    pub(crate) fn projecting(mut self, projection: Option<&Arc<HeadWeights>>) -> Pooler {
        self.projection = projection.filter(|_| self.pooling != Pooling::None).cloned();
        self
    }

    /// Takes the hidden states of the next rows, `[rows, width]`.
    pub(crate) fn push(&mut self, hidden: Vec<f32>) {
        match self.pooling {
            Pooling::Mean => {
                self.sum.resize(self.width, 0.0);
                for row in hidden.chunks_exact(self.width) {
                    let sums = self.sum.iter_mut().zip(row);
                    sums.for_each(|(sum, value)| *sum += f64::from(*value));
                    self.rows += 1;
                }
            }
            _ if self.values.is_empty() => self.values = hidden,
            _ => self.values.extend(hidden),
        }
    }

    /// The embedding of a text of so many tokens.
    pub(crate) fn finish(self, tokens: usize, times: RequestTimes) -> Embedding {
        let Pooler { pooling, normalized, mut width, projection, sum, rows, mut values } = self;
        if pooling == Pooling::Mean {
            values = sum.into_iter().map(|sum| (sum / rows as f64) as f32).collect();
        }
        if let Some(projection) = projection {
            values = projection.apply(&values);
            width = values.len();
        }
        if normalized {
            for vector in values.chunks_exact_mut(width) {
                let length = length(vector);
                if length > 0.0 {
                    let unit = |value: &mut f32| *value = (f64::from(*value) / length) as f32;
                    vector.iter_mut().for_each(unit);
                }
            }
        }
        Embedding { values, width, tokens, pooling, times }
    }
}
