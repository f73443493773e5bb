//! The order of documents for a query.

use std::sync::Arc;

use super::Engine;
use crate::embedding::EmbedRequest;
use crate::error::Error;
use crate::rerank::{Ranking, RerankError, RerankRequest, Reranker};

impl Engine {
    /// Orders documents by how well they answer a query. The model reads the query together with each document, so this is more
    /// precise than comparing embeddings, and takes a pass for each document. It needs a model with a head for it, such as
    /// bge-reranker or Qwen3-Reranker. As many documents as the engine's maximum of sequences are computed together. Dropping
    /// the future cancels the request.
    ///
    /// ```no_run
    /// # use lapwing::{Engine, RerankRequest};
    /// # async fn example(engine: Engine) -> Result<(), lapwing::Error> {
    /// let documents = ["a small boat", "a bowl of rice"];
    /// let ranking = engine.rerank(RerankRequest::new("What floats?", documents)).await?;
    /// for found in &ranking.documents {
    ///     println!("{} {}", found.score, documents[found.index]);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// When the model is no reranker, or a pair of query and document exceeds the context; and as [`embed`](Engine::embed), for
    /// the first document that fails; the others are cancelled.
    pub async fn rerank(&self, request: RerankRequest) -> Result<Ranking, Error> {
        let reranker = Arc::clone(self.reranker()?);
        let (engine, pooling) = (self.clone(), reranker.pooling);
        let RerankRequest { query, documents, client, traced } = request;
        let pairs = move || engine.pairs(&query, &documents);
        let pairs = self.inner.prompts.spawn(pairs).await.map_err(Error::thread)??;
        let requests = pairs.into_iter().map(|ids| EmbedRequest {
            client: client.clone(),
            traced,
            ..EmbedRequest::ids(ids).pooling(pooling)
        });
        let embedded = self.embed_batch(requests).await?;
        let score = move || {
            let mut ranking = Ranking::default();
            for text in embedded {
                ranking.push(reranker.head.apply(&text.values), text.tokens);
            }
            ranking.sort();
            ranking
        };
        self.inner.prompts.spawn(score).await.map_err(Error::thread)
    }

    /// Whether the model has a head that ranks documents ([`rerank`](Engine::rerank)).
    pub fn is_reranker(&self) -> bool {
        self.inner.reranker.is_some()
    }

    fn reranker(&self) -> Result<&Arc<Reranker>, Error> {
        let no_head = || RerankError::NoHead { path: self.inner.path.clone() };
        Ok(self.inner.reranker.as_ref().ok_or_else(no_head)?)
    }

    /// Token ids of each pair of query and document.
    fn pairs(&self, query: &str, documents: &[String]) -> Result<Vec<Vec<u32>>, Error> {
        let inner = &*self.inner;
        let most = inner.context + 1;
        self.check_text(query, most)?;
        let composed = self.reranker()?.composed.as_ref();
        let pair = |document: &String| -> Result<Vec<u32>, Error> {
            self.check_text(document, most)?;
            let ids = match composed {
                Some(composed) => Some(composed.ids(&inner.tokenizer, query, document)),
                None => inner.tokenizer.encode_pair(query, document),
            };
            let no_pairs = || RerankError::NoPairs { path: inner.path.clone() };
            Ok(ids.ok_or_else(no_pairs)?)
        };
        documents.iter().map(pair).collect()
    }
}
