//! Ten thousand damaged files older than GGUF, each converted: an error or a good GGUF file, without a
//! panic and with little memory. A test binary of its own, so that its peak memory is that of the reader.
#![cfg(not(loom))]
#![allow(clippy::disallowed_methods, reason = "the test reports how long the slowest file takes")]

#[path = "integration/damage.rs"]
mod damage;
#[path = "integration/gguf_touch.rs"]
mod gguf_touch;

use std::path::Path;
use std::time::{Duration, Instant};

use damage::{EXTREMES, RSS_MAX_KB, Random, flip, overwrite, peak_rss_kb};
use lapwing_kernels::weights::legacy::{LegacyError, LegacyFile, LegacyOptions};
use lapwing_kernels::weights::parse;

/// A whole file, and the ranges of its fields outside the vocabulary and the data.
struct Seed {
    bytes: Vec<u8>,
    fields: Vec<usize>,
}

impl Seed {
    fn of(name: &str) -> Seed {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/reference/legacy");
        let bytes = std::fs::read(folder.join(name)).expect("a reference");
        let names = bytes.windows(7).enumerate().filter(|(_, w)| *w == b".weight");
        let headers = names.flat_map(|(at, _)| at.saturating_sub(44)..at + 8);
        let fields = (0..48).chain(headers).collect();
        Seed { bytes, fields }
    }

    /// Damages the file in one to three places.
    fn mutant(&self, random: &mut Random) -> Vec<u8> {
        let mut file = self.bytes.clone();
        for _ in 0..=random.below(3) {
            let at = match random.below(3) {
                0 => random.below(file.len()),
                _ => self.fields[random.below(self.fields.len())].min(file.len() - 1),
            };
            match random.below(7) {
                0 => file.truncate(at.max(1)),
                1 | 2 => flip(random, &mut file, at),
                3 => file.insert(at, random.next() as u8),
                4 => drop(file.remove(at)),
                5 => overwrite(&mut file, at & !3, &(random.below(300) as u32).to_le_bytes()),
                _ => {
                    let value = EXTREMES[random.below(EXTREMES.len())] as u32;
                    overwrite(&mut file, at & !3, &value.to_le_bytes());
                }
            }
            if file.is_empty() {
                break;
            }
        }
        file
    }
}

fn convert(bytes: Vec<u8>) -> Result<Vec<u8>, LegacyError> {
    let file = LegacyFile::parse(bytes)?;
    let mut out = Vec::new();
    let writer = file.to_gguf(&LegacyOptions::default())?;
    writer.write_with(&mut out, |at, out| file.write_tensor(at, out))?;
    Ok(out)
}

#[test]
fn damaged_files_are_an_error_or_become_a_good_file() {
    let seeds =
        ["ggml-q4_1.bin", "ggmf-v1-q4_0.bin", "ggjt-v1-q4_0.bin", "ggjt-v2-q8_0.bin"].map(Seed::of);
    for seed in &seeds {
        convert(seed.bytes.clone()).expect("a whole file");
    }
    let (mut good, mut bad, mut slowest) = (0u64, 0u64, Duration::ZERO);
    let start = Instant::now();
    let mutants = 10_000u64;
    for n in 0..mutants {
        let mut random = Random::of_case(n);
        let mutant = seeds[(n % seeds.len() as u64) as usize].mutant(&mut random);
        let since = Instant::now();
        match convert(mutant) {
            Ok(file) => {
                gguf_touch::touch(&file, &parse(&file).expect("a good file"));
                good += 1;
            }
            Err(error) => {
                assert!(!error.to_string().is_empty());
                bad += 1;
            }
        }
        slowest = slowest.max(since.elapsed());
    }
    let all = start.elapsed();
    assert!(good > mutants / 100, "only {good} mutants convert: their contents are not tested");
    assert!(bad > mutants / 4, "only {bad} mutants fail: the damage is too small");
    if let Some(peak) = peak_rss_kb() {
        assert!(peak < RSS_MAX_KB, "peak of {peak} kB is above {RSS_MAX_KB} kB");
        println!("{good} convert, {bad} fail; {all:.1?}, slowest {slowest:.1?}, peak {peak} kB");
    }
}
