use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;

use super::*;
use crate::models::testing::{EventLog, Memory, cache, hash, noise};

async fn cancel<F: Future<Output = Result<PathBuf, FetchError>>>(fetch: F) {
    let ended = tokio::time::timeout(Duration::from_millis(200), fetch).await;
    assert!(ended.is_err(), "the fetch ended by itself: {ended:?}");
}

#[tokio::test]
async fn second_fetch_of_a_complete_model_transfers_nothing() {
    let (_dir, cache) = cache();
    let content = noise(5000);
    let source = Memory::honest(&content);
    let mut log = EventLog::default();
    let path = fetch_from(&cache, "m", &source, &mut log).await.unwrap();
    assert_eq!(fs::read(&path).unwrap(), content);
    assert!(log.has(|event| *event == FetchEvent::Verifying));

    let mut log = EventLog::default();
    assert_eq!(fetch_from(&cache, "m", &source, &mut log).await.unwrap(), path);
    assert_eq!(log.0, [FetchEvent::Done { path }]);
    assert_eq!(source.deliveries.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn fetch_dropped_halfway_leaves_no_model_and_the_next_succeeds() {
    let (_dir, cache) = cache();
    let content = noise(5000);
    let stuck = Memory { stuck_halfway: true, ..Memory::honest(&content) };
    cancel(fetch_from(&cache, "m", &stuck, &mut EventLog::default())).await;
    assert_eq!(cache.path_of("m"), None);
    assert_eq!(cache.list().unwrap(), []);
    assert!(cache.slot("m").unwrap().partial.exists());

    let path =
        fetch_from(&cache, "m", &Memory::honest(&content), &mut EventLog::default()).await.unwrap();
    assert_eq!(fs::read(path).unwrap(), content);
    assert!(!cache.slot("m").unwrap().partial.exists());
}

#[tokio::test]
async fn wrong_hash_leaves_nothing_usable() {
    let (_dir, cache) = cache();
    let mut source = Memory::honest(&noise(5000));
    source.claim.sha256 = Some(hash(b"something else"));
    let error = fetch_from(&cache, "m", &source, &mut EventLog::default()).await.unwrap_err();
    assert!(matches!(error, FetchError::HashMismatch { .. }), "{error}");
    let slot = cache.slot("m").unwrap();
    assert!(!slot.model.exists() && !slot.record.exists() && !slot.partial.exists());
    assert_eq!(source.deliveries.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn wrong_size_is_an_error_even_without_a_hash() {
    let (_dir, cache) = cache();
    let mut source = Memory::honest(&noise(5000));
    source.claim = Claim { bytes: Some(5001), sha256: None };
    let error = fetch_from(&cache, "m", &source, &mut EventLog::default()).await.unwrap_err();
    assert!(
        matches!(error, FetchError::SizeMismatch { expected: 5001, actual: 5000, .. }),
        "{error}"
    );
    assert_eq!(cache.path_of("m"), None);
}

#[tokio::test]
async fn model_without_a_stated_hash_is_reported_as_unverified() {
    let (_dir, cache) = cache();
    let content = noise(5000);
    let mut source = Memory::honest(&content);
    source.claim = Claim::default();
    let mut log = EventLog::default();
    fetch_from(&cache, "m", &source, &mut log).await.unwrap();
    assert!(log.has(|event| matches!(event, FetchEvent::Unverified { .. })));
    let model = cache.model("m").unwrap();
    assert!(!model.verified);
    assert_eq!(model.sha256, hash(&content));
}

#[tokio::test]
async fn a_truncated_model_is_fetched_again() {
    let (_dir, cache) = cache();
    let content = noise(5000);
    let source = Memory::honest(&content);
    let path = fetch_from(&cache, "m", &source, &mut EventLog::default()).await.unwrap();
    fs::write(&path, &content[..100]).unwrap();
    assert_eq!(cache.path_of("m"), None);
    fetch_from(&cache, "m", &source, &mut EventLog::default()).await.unwrap();
    assert_eq!(fs::read(&path).unwrap(), content);
}

#[tokio::test]
async fn a_model_whose_hash_differs_from_the_stated_one_is_replaced() {
    let (_dir, cache) = cache();
    let (old, new) = (noise(5000), noise(6000));
    fetch_from(&cache, "m", &Memory::honest(&old), &mut EventLog::default()).await.unwrap();
    let path =
        fetch_from(&cache, "m", &Memory::honest(&new), &mut EventLog::default()).await.unwrap();
    assert_eq!(fs::read(path).unwrap(), new);
}

#[tokio::test]
async fn a_model_file_without_a_record_is_ignored() {
    let (_dir, cache) = cache();
    let content = noise(5000);
    let source = Memory::honest(&content);
    let path = fetch_from(&cache, "m", &source, &mut EventLog::default()).await.unwrap();
    fs::remove_file(cache.slot("m").unwrap().record).unwrap();
    fs::write(&path, noise(5000).iter().map(|byte| !byte).collect::<Vec<_>>()).unwrap();
    assert_eq!(cache.path_of("m"), None);
    fetch_from(&cache, "m", &source, &mut EventLog::default()).await.unwrap();
    assert_eq!(fs::read(&path).unwrap(), content);
}

#[tokio::test]
async fn concurrent_fetches_transfer_once_and_share_the_file() {
    let (_dir, cache) = cache();
    let content = noise(5000);
    let source = Memory { pause: Duration::from_millis(250), ..Memory::honest(&content) };
    let (mut first, mut second) = (EventLog::default(), EventLog::default());
    let (a, b) = tokio::join!(
        fetch_from(&cache, "m", &source, &mut first),
        fetch_from(&cache, "m", &source, &mut second)
    );
    assert_eq!(a.unwrap(), b.unwrap());
    assert_eq!(source.deliveries.load(Ordering::SeqCst), 1);
    assert!(second.has(|event| matches!(event, FetchEvent::Waiting { .. })));
    assert_eq!(fs::read(cache.path_of("m").unwrap()).unwrap(), content);
}

#[tokio::test]
async fn a_live_process_keeps_the_lock_and_a_killed_one_releases_it() {
    let (_dir, cache) = cache();
    let lock = cache.slot("m").unwrap().lock;
    fs::create_dir_all(cache.dir()).unwrap();
    let script = "import fcntl,sys,time; f=open(sys.argv[1],'w'); fcntl.flock(f,fcntl.LOCK_EX); print('held',flush=True); time.sleep(60)";
    let mut holder = Command::new("python3")
        .args(["-c", script])
        .arg(&lock)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(holder.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line.trim(), "held");

    let content = noise(5000);
    let source = Memory::honest(&content);
    cancel(fetch_from(&cache, "m", &source, &mut EventLog::default())).await;
    assert_eq!(source.deliveries.load(Ordering::SeqCst), 0);

    holder.kill().unwrap();
    holder.wait().unwrap();
    let path = fetch_from(&cache, "m", &source, &mut EventLog::default()).await.unwrap();
    assert_eq!(fs::read(path).unwrap(), content);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fetch_can_be_moved_to_another_thread() {
    let (_dir, cache) = cache();
    let mut set = tokio::task::JoinSet::new();
    set.spawn(async move {
        let source = Memory::honest(&noise(100));
        fetch_from(&cache, "m", &source, &mut EventLog::default()).await.is_ok()
    });
    assert!(set.join_next().await.unwrap().unwrap());
}
