//! Lesson: compare sentences by the cosine of their embeddings.
//!
//! ```text
//!  3 sentences ──► Engine::embed_batch ──► 3 vectors ──► cosine of each pair
//! ```
//!
//! Any model gives embeddings. One that was trained for them separates meanings further than this small
//! chat model does.

use lapwing::models::{FetchEvent, ModelCache, ModelName, fetch};
use lapwing::{EmbedRequest, Engine};

const SENTENCES: [&str; 3] = [
    "The cat is sleeping on the sofa.",
    "A kitten naps on the couch.",
    "Interest rates rose by half a percent.",
];

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let name = ModelName::default_model();
    let model = fetch(&ModelCache::open(None)?, &name, &mut |_: FetchEvent| {}).await?;
    let engine = Engine::builder().model(model).build().await?;

    let requests = SENTENCES.map(|sentence| EmbedRequest::text(sentence).normalized());
    let embeddings = engine.embed_batch(requests).await?;
    println!("{} values each, {} pooling", embeddings[0].width, embeddings[0].pooling.name());
    let mut similarities = Vec::new();
    for (a, b) in [(0, 1), (0, 2), (1, 2)] {
        let similarity = embeddings[a].cosine(&embeddings[b]).ok_or("different widths")?;
        println!("{similarity:.3}  {:?} and {:?}", SENTENCES[a], SENTENCES[b]);
        similarities.push(similarity);
    }
    assert!(similarities[0] > similarities[1].max(similarities[2]), "the cats are most alike");
    Ok(())
}
