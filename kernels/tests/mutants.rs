//! Ten thousand damaged weight files: none may cause a panic or much memory use. This is a separate
//! test binary, so that its peak memory is that of the parser.
#![cfg(not(loom))]

#[path = "integration/damage.rs"]
mod damage;
#[path = "integration/gguf_bytes.rs"]
mod gguf_bytes;
#[path = "integration/gguf_touch.rs"]
mod gguf_touch;

use std::hint::black_box;

use damage::{EXTREMES, RSS_MAX_KB, Random, flip, overwrite, peak_rss_kb};
use gguf_bytes::{Raw, bytes, rich};
use gguf_touch::{sum, touch};
use lapwing_kernels::weights::{WeightFile, parse};

/// Damages a file in one to four places.
fn mutate(random: &mut Random, file: &mut Vec<u8>) {
    for _ in 0..=random.below(4) {
        let at = random.below(file.len());
        match random.below(8) {
            0 => file.truncate(at),
            1 | 2 => flip(random, file, at),
            3 => flip(random, file, 8 + at % 16),
            4 => overwrite(file, at, &(EXTREMES[random.below(12)] as u32).to_le_bytes()),
            5 => file.insert(at, random.next() as u8),
            _ => {
                let value = EXTREMES[random.below(12)];
                let places = lengths(file);
                let at = places.get(random.below(places.len())).copied().unwrap_or(at);
                overwrite(file, at, &value.to_le_bytes());
            }
        }
        if file.is_empty() {
            return;
        }
    }
}

/// Positions that look like a length, count or offset: a small number in eight bytes.
fn lengths(file: &[u8]) -> Vec<usize> {
    let small = |bytes: &[u8]| bytes[0] != 0 && bytes[3..].iter().all(|b| *b == 0);
    file.windows(8).enumerate().filter(|(_, w)| small(w)).map(|(at, _)| at).collect()
}

/// Opens a mutant as a file and reads its tensors; returns whether it opens.
fn touch_opened(bytes: &[u8]) -> bool {
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("mutant.gguf");
    std::fs::write(&path, bytes).expect("a file for the test");
    let Ok(file) = WeightFile::open(&path) else { return false };
    for info in file.tensors() {
        black_box(sum(&file
            .tensor(&info.name)
            .expect("a tensor of the list")
            .read()
            .expect("its bytes")));
    }
    true
}

/// Files to damage: one with values of every type, one with nested arrays.
fn seeds() -> Vec<Vec<u8>> {
    let inner = |raw: Raw| raw.u32(9).u64(2).u32(8).u64(1).text("deep").u32(4).u64(1).u32(7);
    let nested = inner(Raw::header(1, 1).text("nested").u32(9)).tensor("t", &[32], 2, 0).data(18);
    vec![bytes(&rich()), nested.0]
}

#[test]
fn damaged_files_cause_no_panic_and_little_memory() {
    let seeds = seeds();
    for seed in &seeds {
        touch(seed, &parse(seed).unwrap());
    }
    let (mut good, mut bad) = (0u64, 0u64);
    let mutants = 10_000u64;
    for n in 0..mutants {
        let mut random = Random::of_case(n);
        let mut file = seeds[(n % seeds.len() as u64) as usize].clone();
        mutate(&mut random, &mut file);
        match parse(&file) {
            Ok(gguf) => {
                touch(&file, &gguf);
                good += 1;
            }
            Err(error) => {
                assert!(!error.to_string().is_empty());
                bad += 1;
            }
        }
        if n % 10 == 0 {
            // A damaged file may parse but claim to be a part of a split model, and then not open.
            assert!(!touch_opened(&file) || parse(&file).is_ok(), "mutant {n}");
        }
    }
    assert!(good > mutants / 100, "only {good} mutants parse: their contents are not tested");
    assert!(bad > mutants / 4, "only {bad} mutants fail: the damage is too small");
    if let Some(peak) = peak_rss_kb() {
        assert!(peak < RSS_MAX_KB, "peak of {peak} kB is above {RSS_MAX_KB} kB");
        println!("{good} parse, {bad} fail, peak {peak} kB");
    }
}
