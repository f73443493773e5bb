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
//! Any model gives embeddings; one that was trained for them (`bert`: MiniLM, BGE, GTE, E5) separates meanings best.
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
//! [embeddings](super::documents::embeddings) has limits and accuracy. `examples/embeddings.rs` is a complete program.
