//! An engine whose packed weights are mapped gives the tokens of one that has read them, also if another program truncates the file
//! while it decodes.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use lapwing::{Engine, EngineBuilder, PackedMemory, PackedUse, Prompt, Request};
#[cfg(target_os = "linux")]
use lapwing_traces::{Analysis, Report, Scope, Timeline, report::ReadReport};

/// Tokens of an answer.
const TOKENS: usize = 12;

fn builder() -> EngineBuilder {
    let tiny = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference/tiny/llama.gguf");
    Engine::builder().model(tiny).threads(1).context(64).prefix_cache(false)
}

fn start(builder: EngineBuilder) -> Engine {
    builder.build_blocking().expect("an engine")
}

/// Ids and the bits of their log-probabilities. `tokens` counts them meanwhile.
fn answer(engine: &Engine, tokens: &AtomicUsize) -> Vec<(u32, u32)> {
    let request = Request::new(Prompt::Ids((5..25).collect())).greedy().ignore_eos();
    let mut stream = engine.generate_blocking(request.max_tokens(TOKENS)).expect("a stream");
    let mut answer = Vec::new();
    for token in stream.blocking() {
        let token = token.expect("a token");
        answer.push((token.id, token.logprob.to_bits()));
        tokens.fetch_add(1, Ordering::Relaxed);
    }
    answer
}

/// A folder for packed weights whose files are mapped; `None`, with a line on stderr, if there is none.
fn folder() -> Option<tempfile::TempDir> {
    for place in [std::env::temp_dir(), PathBuf::from("/dev/shm")] {
        let Ok(folder) = tempfile::tempdir_in(place) else { continue };
        let engine = start(builder().packed_cache(folder.path()));
        match &engine.packed_weights().not_mapped {
            None => return Some(folder),
            Some(reason) => eprintln!("packed weights are not mapped here: {reason}"),
        }
    }
    None
}

#[test]
fn weights_are_mapped_where_the_system_can_and_read_where_the_settings_say_so() {
    let count = AtomicUsize::new(0);
    let want = answer(&start(builder()), &count);
    let Some(folder) = folder() else { return };
    let with = |memory| start(builder().packed_cache(folder.path()).packed_memory(memory));
    let [read, mapped] = [PackedMemory::Read, PackedMemory::Mapped].map(with);
    assert!(answer(&read, &count) == want && answer(&mapped, &count) == want);
    let [of_read, of_mapped] = [&read, &mapped].map(Engine::packed_use);
    assert!(of_read.own_bytes > 0 && of_read.mapped_bytes == 0, "{of_read:?}");
    let swapped = PackedUse { own_bytes: of_read.mapped_bytes, mapped_bytes: of_read.own_bytes };
    assert_eq!(of_mapped, swapped);
    let [read, mapped] = [&read, &mapped].map(Engine::packed_weights);
    assert!(read.loaded && !read.mapped && read.checked && read.notes.is_empty(), "{read:?}");
    assert!(mapped.loaded && mapped.mapped && mapped.notes.is_empty(), "{mapped:?}");
}

#[test]
fn a_file_truncated_while_an_engine_decodes_changes_no_token() {
    let want = answer(&start(builder()), &AtomicUsize::new(0));
    let Some(folder) = folder() else { return };
    for round in 0..100_usize {
        let engine = start(builder().packed_cache(folder.path()));
        let packed = engine.packed_weights();
        assert!(packed.mapped, "round {round}: {packed:?}");
        let path = packed.file.as_ref().expect("a file");
        let len = std::fs::metadata(path).expect("a file").len();
        let count = AtomicUsize::new(0);
        thread::scope(|scope| {
            let other = scope.spawn(|| {
                while count.load(Ordering::Relaxed) < round % TOKENS {
                    std::hint::spin_loop();
                }
                (0..round * 997 % 20_000).for_each(|_| std::hint::spin_loop());
                let file = std::fs::File::options().write(true).open(path).expect("opened");
                file.set_len(len * (round as u64 % 10) / 10).expect("truncated");
            });
            loop {
                let was_changed = other.is_finished();
                assert_eq!(answer(&engine, &count), want, "round {round}");
                if was_changed {
                    break;
                }
            }
        });
        assert_eq!(engine.packed_use().mapped_bytes, 0, "round {round}");
    }
}

/// What the steps of an engine have read from the disk.
#[cfg(target_os = "linux")]
fn reads(engine: &Engine) -> Vec<ReadReport> {
    let timeline = Timeline::new(&engine.recorder().recording());
    Report::new(&timeline, &Analysis::new(&timeline)).reads
}

#[cfg(target_os = "linux")]
#[test]
fn weights_that_are_read_from_the_disk_are_in_the_recording_and_change_no_token() {
    let count = AtomicUsize::new(0);
    let want = answer(&start(builder()), &count);
    let Some(folder) = folder() else { return };
    let engine = start(builder().packed_cache(folder.path()));
    let path = engine.packed_weights().file.as_ref().expect("a file");
    let file = std::fs::File::open(path).expect("a file");
    file.sync_all().expect("written");
    // No process has touched them in a map yet.
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).expect("advised");
    engine.recorder().set_scope(Scope::All);
    assert_eq!(answer(&engine, &count), want);
    let first = reads(&engine);
    let [prefill] = &first[..] else {
        assert!(first.is_empty(), "one pass reads all weights: {first:?}");
        eprintln!("pages of {} cannot be dropped", path.display());
        return;
    };
    assert_eq!((&*prefill.lane, &*prefill.step, prefill.reading), ("cpu", "prefill", 1));
    let mapped = engine.packed_use().mapped_bytes as u64;
    assert!(prefill.bytes > 0 && prefill.bytes <= mapped, "{prefill:?} of {mapped}");
    assert!(prefill.read_ns > 0 && prefill.read_ns <= prefill.busy_ns, "{prefill:?}");
    assert_eq!(answer(&engine, &count), want);
    assert_eq!(reads(&engine)[0].bytes, prefill.bytes, "all weights are in memory");
}
