//! Models in parts.

use std::fs;
use std::path::PathBuf;

use super::server::{Hub, Reply};
use super::{HubSource, MIB};
use crate::models::fetching::fetch_parts;
use crate::models::testing::{EventLog, cache, hash, noise};
use crate::models::{FetchError, HubRepository, ModelCache, ModelName, Source};
use std::time::Duration;

const FIRST: &str = "Q4_K_M/x-Q4_K_M-00001-of-00002.gguf";
const SECOND: &str = "Q4_K_M/x-Q4_K_M-00002-of-00002.gguf";
const NAME: &str = "hf:owner/repo/Q4_K_M/x-Q4_K_M-00001-of-00002.gguf";

/// A hub with a model in two parts, and nothing else.
async fn hub(first: &[u8], second: &[u8]) -> Hub {
    let hub = Hub::start(first).await;
    hub.set(|state| {
        state.files = vec!["README.md", FIRST, SECOND];
        state.others = vec![("x-Q4_K_M-00002-of-00002.gguf", second.to_vec())];
    });
    hub
}

async fn pull(cache: &ModelCache, hub: &Hub) -> Result<PathBuf, FetchError> {
    let name: HubRepository = "hf:owner/repo".parse().unwrap();
    let file = name.listed(Some(&hub.url())).await?;
    assert_eq!(file.to_string(), NAME);
    let source = |part| HubSource::new(part).endpoint(hub.url()).backoff(Duration::from_millis(1));
    let sources: Vec<HubSource> = file.parts().into_iter().map(source).collect();
    let sources: Vec<&dyn Source> = sources.iter().map(|source| source as &dyn Source).collect();
    fetch_parts(cache, NAME, &sources, &mut EventLog::default()).await
}

#[tokio::test]
async fn all_parts_are_fetched_and_are_one_model() {
    let (_dir, cache) = cache();
    let (first, second) = (noise(MIB + 7), noise(2 * MIB));
    let hub = hub(&first, &second).await;
    let path = pull(&cache, &hub).await.unwrap();
    assert!(path.ends_with("x-Q4_K_M-00001-of-00002.gguf"), "{path:?}");
    assert_eq!(fs::read(&path).unwrap(), first);
    let other = path.with_file_name("x-Q4_K_M-00002-of-00002.gguf");
    assert_eq!(fs::read(&other).unwrap(), second);

    let listed = cache.list().unwrap();
    assert_eq!(listed.len(), 1, "{listed:?}");
    let bytes = (first.len() + second.len()) as u64;
    assert_eq!((&*listed[0].name, listed[0].bytes, listed[0].files), (NAME, bytes, 2));
    assert!(listed[0].verified && listed[0].path == path);
    assert_eq!(listed[0].sha256, hash(format!("{}\n{}\n", hash(&first), hash(&second)).as_bytes()));
    let before = hub.requests();
    for name in [
        "hf:owner/repo",
        "hf:owner/repo:q4_k_m",
        "hf:owner/repo/Q4_K_M/x-Q4_K_M-00002-of-00002.gguf",
    ] {
        let name: ModelName = name.parse().unwrap();
        assert_eq!(name.resolve(&cache).await.unwrap().to_string(), NAME);
    }
    assert_eq!(hub.requests(), before, "a cached model needs no network");

    cache.verify(NAME).await.unwrap();
    let mut damaged = second.clone();
    damaged[5] ^= 1;
    fs::write(&other, damaged).unwrap();
    let error = cache.verify(NAME).await.unwrap_err();
    assert!(error.to_string().contains("x-Q4_K_M-00002-of-00002.gguf"), "{error}");
    cache.remove(NAME).unwrap();
    assert!(!path.exists() && !other.exists() && cache.list().unwrap().is_empty());
}

#[tokio::test]
async fn an_interrupted_fetch_continues_in_the_middle_of_a_part() {
    let (_dir, cache) = cache();
    let (first, second) = (noise(MIB), noise(4 * MIB));
    let hub = hub(&first, &second).await;
    // The first part is read whole, of the second one a half, and then nothing gets through.
    hub.set(|state| {
        state.script = vec![Reply::CutAfter(MIB), Reply::CutAfter(2 * MIB)];
        state.script.extend(vec![Reply::CutAfter(0); 10]);
    });
    let error = pull(&cache, &hub).await.unwrap_err();
    let FetchError::Interrupted { bytes, .. } = error else { panic!("{error}") };
    assert!(bytes > 0, "nothing was kept");
    assert!(cache.list().unwrap().is_empty(), "one part is no model");

    hub.set(|state| state.script.clear());
    let (before, path) = (hub.ranges().len(), pull(&cache, &hub).await.unwrap());
    assert_eq!(hub.ranges()[before..], [Some(bytes as usize)], "only the rest is transferred");
    assert_eq!(fs::read(path.with_file_name("x-Q4_K_M-00002-of-00002.gguf")).unwrap(), second);
}

#[tokio::test]
async fn one_part_alone_is_no_model() {
    let (_dir, cache) = cache();
    let hub = hub(&noise(MIB), &noise(MIB)).await;
    let path = pull(&cache, &hub).await.unwrap();
    fs::remove_file(path.with_file_name("x-Q4_K_M-00002-of-00002.gguf")).unwrap();
    assert!(cache.model(NAME).is_none() && cache.list().unwrap().is_empty());
    pull(&cache, &hub).await.unwrap();
    assert!(cache.model(NAME).is_some());

    // As a record says that was written before models in parts were known.
    cache.remove(NAME).unwrap();
    let source = HubSource::new(NAME.parse().unwrap()).endpoint(hub.url());
    let mut log = EventLog::default();
    crate::models::fetch_from(&cache, NAME, &source, &mut log).await.unwrap();
    assert!(cache.model(NAME).is_none(), "{:?}", cache.list());
    cache.remove(NAME).unwrap();

    hub.set(|state| state.files = vec![FIRST]);
    let error = pull(&cache, &hub).await.unwrap_err();
    assert!(matches!(error, FetchError::NoHubFile { .. }), "{error}");
}
