use std::collections::HashSet;

use super::*;
use crate::models::fetch_from;
use crate::models::testing::{EventLog, Memory, cache, noise};

async fn put(cache: &ModelCache, name: &str, content: &[u8]) -> PathBuf {
    fetch_from(cache, name, &Memory::honest(content), &mut EventLog::default()).await.unwrap()
}

#[test]
fn argument_wins_over_the_environment_and_no_folder_is_an_error() {
    let path = |text: &str| Some(PathBuf::from(text));
    let dir = |candidates| ModelCache::choose(candidates).unwrap().dir;
    assert_eq!(dir([path("/a"), path("/b"), path("/c"), path("/d")]), Path::new("/a"));
    assert_eq!(dir([None, path("/b"), path("/c"), path("/d")]), Path::new("/b"));
    assert_eq!(dir([None, None, None, path("/d")]), Path::new("/d"));
    assert!(matches!(ModelCache::choose([None, None, None, None]), Err(FetchError::NoCacheFolder)));
}

#[test]
fn names_cannot_collide_or_leave_the_folder() {
    let names = [
        "m",
        "M",
        "a/b",
        "a+b",
        "a:b",
        "a=b",
        "a%2Bb",
        "hf:o/r/f.gguf",
        "hf:o/r/f.gguf@main",
        "..",
        "../m",
        "/m",
        ".m",
        "a b",
        "ä",
        "a\\b",
        "a\0b",
    ];
    let stems: Vec<_> = names.iter().map(|name| stem(name).unwrap()).collect();
    assert_eq!(stems.iter().collect::<HashSet<_>>().len(), names.len(), "{stems:?}");
    for stem in stems {
        assert!(!stem.starts_with('.') && !stem.contains(['/', '\\', '\0']), "{stem}");
    }
    assert!(matches!(stem(""), Err(FetchError::BadName { .. })));
    assert!(matches!(stem(&"x".repeat(300)), Err(FetchError::BadName { .. })));
}

#[test]
fn cache_that_does_not_exist_is_empty() {
    let (_dir, cache) = cache();
    assert_eq!(cache.list().unwrap(), []);
    assert_eq!(cache.path_of("m"), None);
    assert!(matches!(cache.remove("m"), Err(FetchError::NotCached { .. })));
    assert!(!cache.dir().exists());
}

#[tokio::test]
async fn listing_ignores_what_is_not_a_complete_model() {
    let (_dir, cache) = cache();
    let kept = put(&cache, "hf:o/r/kept.gguf", &noise(10)).await;
    let cut = put(&cache, "cut", &noise(10)).await;
    fs::write(cut, noise(9)).unwrap();
    fs::write(cache.dir().join("stray.json"), "{}").unwrap();
    fs::write(cache.dir().join("stray.gguf"), "GGUF").unwrap();
    fs::copy(kept.with_extension("json"), cache.dir().join("copied.json")).unwrap();
    let found = cache.list().unwrap();
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(
        (found[0].name.as_str(), &found[0].path, found[0].bytes),
        ("hf:o/r/kept.gguf", &kept, 10)
    );
}

#[tokio::test]
async fn removed_model_is_gone_and_can_be_fetched_again() {
    let (_dir, cache) = cache();
    put(&cache, "m", &noise(10)).await;
    cache.remove("m").unwrap();
    assert_eq!(cache.path_of("m"), None);
    assert!(matches!(cache.remove("m"), Err(FetchError::NotCached { .. })));
    put(&cache, "m", &noise(10)).await;
    assert!(cache.path_of("m").is_some());
}

#[tokio::test]
async fn model_that_is_being_fetched_is_not_removed() {
    let (_dir, cache) = cache();
    put(&cache, "m", &noise(10)).await;
    let _lock = FetchLock::try_take(&cache.slot("m").unwrap().lock).unwrap().unwrap();
    assert!(matches!(cache.remove("m"), Err(FetchError::Busy { .. })));
    assert!(cache.path_of("m").is_some());
}

#[tokio::test]
async fn flipped_bit_is_found_by_verification() {
    let (_dir, cache) = cache();
    let path = put(&cache, "m", &noise(1000)).await;
    assert_eq!(cache.verify("m").await.unwrap().path, path);
    let mut content = noise(1000);
    content[500] ^= 1;
    fs::write(path, content).unwrap();
    assert!(matches!(cache.verify("m").await, Err(FetchError::HashMismatch { .. })));
    assert!(matches!(cache.verify("other").await, Err(FetchError::NotCached { .. })));
}

#[test]
fn leftovers_are_cleaned_unless_young_or_under_way() {
    let (_dir, cache) = cache();
    for name in ["left", "busy"] {
        let partial = cache.slot(name).unwrap().partial;
        fs::create_dir_all(&partial).unwrap();
        fs::write(partial.join("model"), "half").unwrap();
    }
    let _lock = FetchLock::try_take(&cache.slot("busy").unwrap().lock).unwrap().unwrap();
    assert_eq!(cache.clean(Duration::from_secs(3600)).unwrap(), 0);
    assert_eq!(cache.clean(Duration::ZERO).unwrap(), 1);
    assert!(!cache.slot("left").unwrap().partial.exists());
    assert!(cache.slot("busy").unwrap().partial.exists());
}
