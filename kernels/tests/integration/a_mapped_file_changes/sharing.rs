//! Engines and processes that use one file have its weights in memory once.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};

use super::*;
use crate::support::is_emulated;

/// Names the file of packed weights to the process that shares it.
const FILE: &str = "LAPWING_TEST_MAPPED_FILE";

/// A number in KiB of each map of a file that this process has.
pub(super) fn of_map(path: &Path, field: &str) -> Vec<usize> {
    let path = fs::canonicalize(path).expect("a file");
    let maps = fs::read_to_string("/proc/self/smaps").expect("maps");
    let (mut is_of_file, mut found) = (false, Vec::new());
    for line in maps.lines() {
        let first = line.split_whitespace().next().unwrap_or_default();
        if first.contains('-') && !first.ends_with(':') {
            is_of_file = line.ends_with(path.to_str().expect("UTF-8"));
        } else if is_of_file && first == field {
            let number = line[field.len()..].trim_end_matches("kB").trim();
            found.push(number.parse().expect("a number"));
        }
    }
    found
}

fn hash(bits: &[u32]) -> u64 {
    let mut hasher = DefaultHasher::new();
    bits.hash(&mut hasher);
    hasher.finish()
}

#[test]
fn two_engines_of_a_process_map_the_same_pages() {
    let Some(Kept { cache, want, folder: _folder }) = kept() else { return };
    let mut both = [Bound::new(&cache), Bound::new(&cache)];
    both.iter_mut().for_each(|bound| assert!(bound.bits().expect("values") == want));
    let sum = |field: &str| of_map(&cache.path, field).into_iter().sum::<usize>();
    assert_eq!(of_map(&cache.path, "Rss:").len(), 2);
    assert!(sum("Rss:") > 0);
    assert_eq!((sum("Anonymous:"), sum("Private_Dirty:")), (0, 0), "pages of one of them only");
}

/// What the other process does: it computes, says so, and waits.
#[test]
fn the_other_process() {
    let Some(path) = std::env::var_os(FILE) else { return };
    let cache = PackCache { path: path.into(), bytes_max: 1 << 30, memory: PackedMemory::Mapped };
    let mut bound = Bound::new(&cache);
    let bits = bound.bits().expect("values");
    let report = pack_report(&bound.tiny.file).expect("a report");
    println!("\n{FILE} {} {}", hash(&bits), report.checked);
    std::io::stdin().read_line(&mut String::new()).expect("a line");
}

#[test]
fn two_processes_share_the_pages_and_check_nothing() {
    // The emulator runs this program, and no other.
    if is_emulated() {
        return;
    }
    let Some(Kept { cache, want, folder: _folder }) = kept() else { return };
    let test = "a_mapped_file_changes::sharing::the_other_process";
    let mut other = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", test, "--nocapture"])
        .env(FILE, &cache.path)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a process");
    let mut said = BufReader::new(other.stdout.take().expect("its output")).lines();
    let line = said.find_map(|line| line.expect("a line").strip_prefix(FILE).map(str::to_owned));
    assert_eq!(line.expect("its report").trim(), format!("{} false", hash(&want)));
    let mut bound = Bound::new(&cache);
    assert!(bound.bits().expect("values") == want);
    let sum = |field: &str| of_map(&cache.path, field).into_iter().sum::<usize>();
    // Pages that only this process has mapped so far may be clean: the file has them once. How many there are depends on which
    // pages the system maps beside those that are read, and which it has unmapped since.
    assert!(sum("Shared_Clean:") + sum("Shared_Dirty:") > 0, "no page is mapped by both");
    assert_eq!((sum("Anonymous:"), sum("Private_Dirty:")), (0, 0), "pages of this process only");
    other.stdin.take().expect("its input").write_all(b"\n").expect("it waits");
    assert!(other.wait().expect("its end").success());
}
