mod parts;
mod server;
mod start;

use std::fs;
use std::path::PathBuf;

use super::*;
use crate::models::HubRepository;
use crate::models::testing::{EventLog, cache, hash, noise};
use crate::models::{ModelCache, fetch_from};
use server::{COMMIT, Hub, Reply};

const NAME: &str = "hf:owner/repo/sub/model.gguf";
const MIB: usize = 1 << 20;

fn source(hub: &Hub) -> HubSource {
    HubSource::new(NAME.parse().unwrap()).endpoint(hub.url()).backoff(Duration::from_millis(1))
}

async fn pull(cache: &ModelCache, hub: &Hub) -> (Result<PathBuf, FetchError>, EventLog) {
    let mut log = EventLog::default();
    let result = fetch_from(cache, NAME, &source(hub), &mut log).await;
    (result, log)
}

fn assert_nothing_kept(cache: &ModelCache) {
    let slot = cache.slot(NAME).unwrap();
    assert!(!slot.model.exists() && !slot.record.exists() && !slot.partial.exists());
}

#[tokio::test]
async fn file_behind_a_redirect_is_compared_with_the_hubs_hash() {
    let (_dir, cache) = cache();
    let content = noise(3 * MIB + 17);
    let hub = Hub::start(&content).await;
    let (result, log) = pull(&cache, &hub).await;
    assert_eq!(fs::read(result.unwrap()).unwrap(), content);
    assert_eq!(log.advanced(0), content.len() as u64);
    assert!(log.has(|event| *event == FetchEvent::Verifying));
    let model = cache.model(NAME).unwrap();
    assert_eq!((model.verified, model.sha256, model.source.as_str()), (true, hash(&content), NAME));
    assert!(!cache.slot(NAME).unwrap().partial.exists());
    let gets = hub.gets();
    assert!(
        gets.iter().all(|get| get.contains(COMMIT) || get.starts_with("/cdn")),
        "not pinned: {gets:?}"
    );

    let before = hub.requests();
    assert!(pull(&cache, &hub).await.0.is_ok());
    assert_eq!(hub.requests(), before, "a cached model needs no network");
}

#[tokio::test]
async fn wrong_hash_leaves_nothing_usable() {
    let (_dir, cache) = cache();
    let hub = Hub::start(&noise(MIB)).await;
    hub.set(|state| state.etag = hash(b"something else"));
    let error = pull(&cache, &hub).await.0.unwrap_err();
    assert!(matches!(error, FetchError::HashMismatch { .. }), "{error}");
    assert_nothing_kept(&cache);
}

#[tokio::test]
async fn an_interrupted_transfer_continues_where_it_stopped() {
    let (_dir, cache) = cache();
    let content = noise(4 * MIB);
    let hub = Hub::start(&content).await;
    hub.set(|state| state.script = vec![Reply::CutAfter(2 * MIB)]);
    let (result, log) = pull(&cache, &hub).await;
    assert_eq!(fs::read(result.unwrap()).unwrap(), content);
    assert_eq!(log.advanced(0), content.len() as u64);
    let ranges = hub.ranges();
    assert_eq!(ranges.len(), 2, "{ranges:?}");
    assert!(ranges[0].is_none() && ranges[1].is_some_and(|start| start > 0), "{ranges:?}");
}

#[tokio::test]
async fn transfer_that_never_gets_through_ends_with_an_error_and_resumes_later() {
    let (_dir, cache) = cache();
    let content = noise(4 * MIB);
    let hub = Hub::start(&content).await;
    hub.set(|state| {
        state.script = vec![Reply::CutAfter(3 * MIB / 2)];
        state.script.extend(vec![Reply::CutAfter(0); 10]);
    });
    let error = pull(&cache, &hub).await.0.unwrap_err();
    let FetchError::Interrupted { bytes, .. } = error else { panic!("{error}") };
    assert!(bytes > 0, "nothing was kept");
    assert_eq!(cache.path_of(NAME), None);

    hub.set(|state| state.script.clear());
    assert_eq!(fs::read(pull(&cache, &hub).await.0.unwrap()).unwrap(), content);
    assert_eq!(hub.ranges().last(), Some(&Some(bytes as usize)));
}

#[tokio::test]
async fn fetch_dropped_midway_is_resumed_by_the_next() {
    let (_dir, cache) = cache();
    let content = noise(4 * MIB);
    let hub = Hub::start(&content).await;
    hub.set(|state| state.script = vec![Reply::StallAfter(3 * MIB)]);
    assert!(tokio::time::timeout(Duration::from_millis(700), pull(&cache, &hub)).await.is_err());
    assert_eq!(cache.path_of(NAME), None);
    let (result, log) = pull(&cache, &hub).await;
    assert_eq!(fs::read(result.unwrap()).unwrap(), content);
    assert_eq!(log.advanced(0), content.len() as u64);
    assert!(hub.ranges().last().unwrap().is_some_and(|start| start >= MIB), "{:?}", hub.ranges());
}

#[tokio::test]
async fn a_partial_file_of_an_older_version_is_not_continued() {
    let (_dir, cache) = cache();
    let hub = Hub::start(&noise(4 * MIB)).await;
    hub.set(|state| state.script = vec![Reply::StallAfter(3 * MIB)]);
    assert!(tokio::time::timeout(Duration::from_millis(700), pull(&cache, &hub)).await.is_err());

    let newer: Vec<_> = noise(4 * MIB).iter().map(|byte| !byte).collect();
    hub.set(|state| {
        state.etag = hash(&newer);
        state.content = newer.clone();
    });
    assert_eq!(fs::read(pull(&cache, &hub).await.0.unwrap()).unwrap(), newer);
    assert_eq!(hub.ranges().last(), Some(&None));
}

#[tokio::test]
async fn a_damaged_leftover_is_discarded_and_fetched_again() {
    let (_dir, cache) = cache();
    let content = noise(2 * MIB);
    let hub = Hub::start(&content).await;
    let partial = cache.slot(NAME).unwrap().partial;
    fs::create_dir_all(&partial).unwrap();
    fs::write(partial.join("model"), vec![7; MIB]).unwrap();
    fs::write(partial.join("version"), format!("{} {}", hash(&content), content.len())).unwrap();
    assert_eq!(fs::read(pull(&cache, &hub).await.0.unwrap()).unwrap(), content);
}

#[tokio::test]
async fn a_server_that_ignores_ranges_sends_the_whole_file() {
    let (_dir, cache) = cache();
    let content = noise(4 * MIB);
    let hub = Hub::start(&content).await;
    hub.set(|state| {
        state.ranges_work = false;
        state.script = vec![Reply::CutAfter(2 * MIB)];
    });
    assert_eq!(fs::read(pull(&cache, &hub).await.0.unwrap()).unwrap(), content);
}

#[tokio::test]
async fn a_small_file_without_a_hash_is_accepted_and_reported() {
    let (_dir, cache) = cache();
    let content = noise(1000);
    let hub = Hub::start(&content).await;
    hub.set(|state| state.etag = "c3ab8ff13720e8ad9047dd39466b3c8974e592c2".to_owned());
    let (result, log) = pull(&cache, &hub).await;
    assert_eq!(fs::read(result.unwrap()).unwrap(), content);
    assert!(log.has(|event| matches!(event, FetchEvent::Unverified { .. })));
    assert!(!cache.model(NAME).unwrap().verified);
}

#[tokio::test]
async fn missing_and_denied_files_have_different_errors() {
    let (_dir, cache) = cache();
    let hub = Hub::start(&noise(1000)).await;
    hub.set(|state| state.status = 404);
    let error = pull(&cache, &hub).await.0.unwrap_err();
    assert!(matches!(error, FetchError::HubNotFound { .. }), "{error}");
    hub.set(|state| state.status = 401);
    let error = pull(&cache, &hub).await.0.unwrap_err();
    assert!(matches!(error, FetchError::HubRefused { .. }), "{error}");
    assert!(error.to_string().contains("HF_TOKEN"), "{error}");
    assert_eq!(cache.path_of(NAME), None);
}

#[tokio::test]
async fn unreachable_hub_is_named_with_what_to_check() {
    let (_dir, cache) = cache();
    let unreachable = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", unreachable.local_addr().unwrap());
    drop(unreachable);
    let source = HubSource::new(NAME.parse().unwrap()).endpoint(&endpoint);
    let error = fetch_from(&cache, NAME, &source, &mut EventLog::default()).await.unwrap_err();
    assert!(
        matches!(&error, FetchError::HubUnreachable { endpoint: named, .. } if *named == endpoint),
        "{error}"
    );
}

#[tokio::test]
async fn a_server_that_sends_more_than_it_stated_is_cut_off() {
    let (_dir, cache) = cache();
    let hub = Hub::start(&noise(2 * MIB)).await;
    hub.set(|state| state.script = vec![Reply::Endless]);
    let ended = tokio::time::timeout(Duration::from_secs(20), pull(&cache, &hub)).await;
    let error = ended.expect("the transfer ends").0.unwrap_err();
    let FetchError::SizeMismatch { expected, actual, .. } = error else { panic!("{error}") };
    assert_eq!(expected, 2 * MIB as u64);
    assert!(actual > expected && actual < 2 * expected, "{actual}");
    assert_nothing_kept(&cache);
}

#[cfg(unix)]
#[tokio::test]
async fn links_planted_in_the_cache_are_not_followed() {
    let (dir, cache) = cache();
    let content = noise(MIB);
    let hub = Hub::start(&content).await;
    let slot = cache.slot(NAME).unwrap();
    let victim = dir.path().join("victim");
    fs::write(&victim, "mine").unwrap();
    fs::create_dir_all(&slot.partial).unwrap();
    let record = slot.record.with_extension("json.partial");
    for place in [slot.partial.join("model"), slot.partial.join("version"), record] {
        std::os::unix::fs::symlink(&victim, place).unwrap();
    }
    let path = pull(&cache, &hub).await.0.unwrap();
    assert_eq!(fs::read(&victim).unwrap(), b"mine");
    assert!(fs::symlink_metadata(&path).unwrap().is_file());
    assert_eq!(fs::read(path).unwrap(), content);
}

#[tokio::test]
async fn a_repository_stands_for_its_file_of_a_quantisation() {
    let (_dir, cache) = cache();
    let hub = Hub::start(&noise(1000)).await;
    hub.set(|state| {
        state.files = vec!["README.md", "m-Q8_0.gguf", "m-q4_k_m.gguf", "m-IQ2_M.gguf"]
    });
    let url = hub.url();
    let file = |name: &str| {
        let (repository, url) = (name.parse::<HubRepository>().unwrap(), url.clone());
        async move { repository.listed(Some(&url)).await }
    };
    assert_eq!(file("hf:owner/repo").await.unwrap().to_string(), "hf:owner/repo/m-q4_k_m.gguf");
    let named = file("hf:owner/repo:q8_0@v1").await.unwrap();
    assert_eq!(named.to_string(), "hf:owner/repo/m-Q8_0.gguf@v1");
    assert!(hub.gets().last().unwrap().ends_with("/api/models/owner/repo/revision/v1"));
    let error = file("hf:owner/repo:Q6_K").await.unwrap_err().to_string();
    assert!(error.contains("m-Q8_0.gguf, m-q4_k_m.gguf") && !error.contains("README"), "{error}");

    let source = HubSource::new(named).endpoint(&url).backoff(Duration::from_millis(1));
    let mut log = EventLog::default();
    fetch_from(&cache, "hf:owner/repo/m-Q8_0.gguf@v1", &source, &mut log).await.unwrap();
    let before = hub.requests();
    let name: crate::models::ModelName = "hf:owner/repo:Q8_0@v1".parse().unwrap();
    let cached = name.resolve(&cache).await.unwrap().to_string();
    assert_eq!(cached, "hf:owner/repo/m-Q8_0.gguf@v1");
    assert_eq!(hub.requests(), before, "a cached model needs no network");

    hub.set(|state| state.status = 404);
    let error = file("hf:owner/repo").await.unwrap_err();
    assert!(matches!(error, FetchError::HubNotFound { .. }), "{error}");
}
