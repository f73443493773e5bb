//! Headers are read without the weights behind them.

use lapwing_kernels::formats::DType;
use lapwing_kernels::weights::GgufWriter;

use super::*;
use crate::models::header::{Content, NamedHeader};

/// A file with a key of so many bytes, and 4 MiB of weights.
fn file(key_bytes: usize, tensor: &str) -> Vec<u8> {
    let mut file = Vec::new();
    GgufWriter::new()
        .meta("general.architecture", "llama")
        .meta("general.description", "x".repeat(key_bytes))
        .tensor(tensor, &[1024, 1024], DType::F32, noise(4 * MIB))
        .write_to(&mut file)
        .unwrap();
    file
}

async fn error_of(hub: &Hub) -> FetchError {
    source(hub).header().await.expect_err("no header")
}

#[tokio::test]
async fn a_header_is_read_and_the_weights_stay_where_they_are() {
    let content = file(100, "w");
    let hub = Hub::start(&content).await;
    let header = source(&hub).header().await.unwrap();
    assert_eq!((header.bytes, header.gguf.tensors.len()), (content.len() as u64, 1));
    assert_eq!(header.gguf.metadata.str("general.architecture").unwrap(), "llama");
    assert_eq!((hub.ranges(), hub.sent()), (vec![Some(0)], MIB));
}

#[tokio::test]
async fn a_long_header_takes_a_few_requests_each_for_what_is_not_there() {
    let hub = Hub::start(&file(3 * MIB, "w")).await;
    let header = source(&hub).header().await.unwrap();
    assert_eq!(header.gguf.metadata.str("general.description").unwrap().len(), 3 * MIB);
    let ranges = hub.ranges();
    assert!(ranges.len() <= 3 && ranges.is_sorted(), "{ranges:?}");
    assert!(hub.sent() < 5 * MIB, "{} bytes of the 7 MiB", hub.sent());
}

#[tokio::test]
async fn an_interrupted_header_continues_and_a_server_without_ranges_is_read_from_its_start() {
    for ranges_work in [true, false] {
        let hub = Hub::start(&file(2 * MIB, "w")).await;
        hub.set(|state| {
            state.ranges_work = ranges_work;
            state.script = vec![Reply::CutAfter(1000), Reply::CutAfter(MIB / 2)];
        });
        let header = source(&hub).header().await.unwrap();
        assert_eq!(header.gguf.tensors[0].name, "w", "ranges {ranges_work}");
    }
    let hub = Hub::start(&file(100, "w")).await;
    hub.set(|state| state.script = vec![Reply::CutAfter(10); 9]);
    assert!(matches!(error_of(&hub).await, FetchError::Interrupted { .. }));
}

#[tokio::test]
async fn hostile_and_overlong_headers_are_refused_early() {
    let hub = Hub::start(&noise(2 * MIB)).await;
    let error = error_of(&hub).await;
    assert!(matches!(error, FetchError::BadHeader { .. }), "{error}");
    // More tensors than a file of that size has.
    let mut content = file(100, "w");
    content[8..16].copy_from_slice(&u64::MAX.to_le_bytes());
    let hub = Hub::start(&content).await;
    assert!(error_of(&hub).await.to_string().contains("tensor count"));
    // A text of 100 MiB in a file that claims to have as much.
    let mut content = file(100, "w");
    let at = content.windows(19).position(|bytes| bytes == b"general.description").unwrap();
    content[at + 23..at + 31].copy_from_slice(&(100 * MIB as u64).to_le_bytes());
    let hub = Hub::start(&content).await;
    hub.set(|state| state.size = Some(1 << 40));
    let error = error_of(&hub).await;
    assert!(
        matches!(error, FetchError::HeaderTooLarge { limit, .. } if limit == 64 << 20),
        "{error}"
    );
    assert_eq!(hub.sent(), MIB, "no more is read than shows it");
    // The weights end behind the end of the file.
    let content = file(100, "w");
    let hub = Hub::start(&content[..content.len() - 1]).await;
    assert!(matches!(error_of(&hub).await, FetchError::BadHeader { .. }));
}

#[tokio::test]
async fn missing_denied_and_empty_repositories_have_different_errors() {
    let (_dir, cache) = cache();
    let hub = Hub::start(&file(100, "w")).await;
    let url = hub.url();
    let of = async |name: &str| NamedHeader::of(&name.parse().unwrap(), &cache, Some(&url)).await;
    hub.set(|state| state.files = vec!["README.md", "config.json"]);
    let error = of("hf:owner/repo").await.unwrap_err();
    assert!(error.to_string().contains("no whole GGUF file"), "{error}");
    for (status, names) in [(404, "was not found"), (401, "denies access"), (403, "HF_TOKEN")] {
        hub.set(|state| state.status = status);
        for name in ["hf:owner/repo", NAME] {
            let error = of(name).await.unwrap_err();
            assert!(error.to_string().contains(names), "{name}: {error}");
        }
    }
    let error = of("smollm2").await.unwrap_err();
    assert!(matches!(error, FetchError::NoHeader { .. }), "{error}");
    assert_eq!(hub.sent(), 0);
}

#[tokio::test]
async fn a_repository_lists_its_models_with_sizes_and_a_cached_one_is_read_here() {
    let (_dir, cache) = cache();
    let (small, large) = (file(10, "w"), file(MIB, "w"));
    let hub = Hub::start(&small).await;
    hub.set(|state| {
        state.files = vec!["m-Q8_0.gguf", "m-Q4_K_M.gguf", "mmproj-m.gguf", "README.md"];
        state.others = vec![("m-Q8_0.gguf", large.clone())];
    });
    let url = hub.url();
    let of = async |name: &str| NamedHeader::of(&name.parse().unwrap(), &cache, Some(&url)).await;
    let found = of("hf:owner/repo").await.unwrap();
    assert_eq!(found.name, "hf:owner/repo/m-Q4_K_M.gguf");
    let Content::Remote { bytes, .. } = found.content else { panic!("{found:?}") };
    assert_eq!(bytes, small.len() as u64);
    let models = found.models.unwrap();
    let sizes: Vec<_> = models.iter().map(|m| (m.file.file.as_str(), m.bytes, m.parts)).collect();
    let (small, large) = (Some(small.len() as u64), Some(large.len() as u64));
    assert_eq!(sizes, [("m-Q4_K_M.gguf", small, 1), ("m-Q8_0.gguf", large, 1)]);

    let name = "hf:owner/repo/m-Q4_K_M.gguf";
    let fetched = HubSource::new(name.parse().unwrap()).endpoint(&url);
    let path = fetch_from(&cache, name, &fetched, &mut EventLog::default()).await.unwrap();
    let sent = hub.sent();
    let found = of("hf:owner/repo").await.unwrap();
    assert!(matches!(&found.content, Content::File(file) if *file == path), "{found:?}");
    assert_eq!((hub.sent(), found.models.unwrap().len()), (sent, 2));
    // Without an answer of the hub, the model is there and the others are unknown.
    hub.set(|state| state.status = 503);
    let found = of("hf:owner/repo").await.unwrap();
    assert!(matches!(found.content, Content::File(_)) && found.models.is_err());
}

#[tokio::test]
async fn the_parts_of_a_split_model_are_one_header() {
    let (_dir, cache) = cache();
    let (first, second) = (file(10, "a"), file(20, "b"));
    let hub = Hub::start(&first).await;
    let names = ["m-Q8_0-00001-of-00002.gguf", "m-Q8_0-00002-of-00002.gguf"];
    hub.set(|state| {
        state.files = names.to_vec();
        state.others = vec![("00002-of-00002.gguf", second.clone())];
    });
    let url = hub.url();
    let of = async |name: &str| NamedHeader::of(&name.parse().unwrap(), &cache, Some(&url)).await;
    let second_of = format!("hf:owner/repo/{}", names[1]);
    for name in ["hf:owner/repo:Q8_0", second_of.as_str()] {
        let found = of(name).await.unwrap();
        let Content::Remote { gguf, bytes, files } = found.content else { panic!("{name}") };
        let tensors: Vec<&str> = gguf.tensors.iter().map(|tensor| tensor.name.as_str()).collect();
        assert_eq!((tensors, files.len()), (vec!["a", "b"], 2), "{name}");
        assert_eq!(bytes, (first.len() + second.len()) as u64);
        assert_eq!(gguf.metadata.str("general.description").unwrap().len(), 10);
        let models = found.models.unwrap();
        assert_eq!((models.len(), models[0].parts, models[0].bytes), (1, 2, Some(bytes)));
    }
    hub.set(|state| state.others = vec![("00002-of-00002.gguf", first.clone())]);
    let error = of("hf:owner/repo").await.unwrap_err();
    assert!(error.to_string().contains("tensor 'a' is in two parts"), "{error}");
}
