//! Embeddings: texts as vectors whose angles tell how alike the texts are.
//!
//! ```no_run
//! use lapwing::{EmbedRequest, Engine};
//!
//! async fn alike(engine: &Engine) -> Result<f32, Box<dyn std::error::Error>> {
//!     let texts = ["The cat is asleep.", "A kitten naps."];
//!     let embedded = engine.embed_batch(texts.map(EmbedRequest::text)).await?;
//!     Ok(embedded[0].cosine(&embedded[1]).ok_or("embeddings of different models")?)
//! }
//! ```
//!
//! Any model gives embeddings; one that was trained for them (MiniLM, BGE, GTE, E5, EmbeddingGemma) separates meanings best.
//! An engine of such an encoder generates no text. Texts of a batch are computed together as far as they fit.
//!
//! How the states of a text's tokens become one vector is what the model's file says, or
//! [`Pooling`](crate::Pooling):
//!
//! ```
//! use lapwing::{EmbedRequest, Pooling};
//!
//! let request = EmbedRequest::text("query: cats").pooling(Pooling::Mean).normalized();
//! assert!(request.normalized);
//! ```
//!
//! A reranker reads a query together with each document, and orders the documents:
//!
//! ```no_run
//! use lapwing::{Engine, RerankRequest};
//!
//! async fn best<'a>(engine: &Engine, documents: &[&'a str]) -> Result<&'a str, lapwing::Error> {
//!     let request = RerankRequest::new("What floats?", documents.iter().copied());
//!     let ranking = engine.rerank(request).await?;
//!     Ok(ranking.documents.first().map_or("", |found| documents[found.index]))
//! }
//! ```
//!
//! [embeddings](super::documents::embeddings) has limits and accuracy. `examples/embeddings.rs` is a complete program.
