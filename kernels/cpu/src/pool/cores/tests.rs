use super::{CoreSet, CoresError};
use crate::pool::Pool;
use std::collections::BTreeMap;
use std::sync::{Barrier, Mutex};
use std::thread::{self, ThreadId};

fn set(text: &str) -> CoreSet {
    text.parse().expect(text)
}

#[test]
fn text_names_a_set_of_cores() {
    for (text, cores, shortest) in [
        ("0", &[0][..], "0"),
        ("0-3", &[0, 1, 2, 3], "0-3"),
        ("0,2-3", &[0, 2, 3], "0,2-3"),
        ("5, 1-2 ,2,0", &[0, 1, 2, 5], "0-2,5"),
        ("1023", &[1023], "1023"),
    ] {
        let set = set(text);
        assert_eq!((set.cores(), &*set.to_string()), (cores, shortest), "{text}");
    }
}

#[test]
fn text_that_names_no_cores_is_refused() {
    for (text, found) in [
        ("", ""),
        ("0,", ""),
        ("3-0", "3-0"),
        ("a", "a"),
        ("0-", "0-"),
        ("-1", "-1"),
        ("0,1024", "1024"),
        ("0-99999999999", "0-99999999999"),
    ] {
        let error = text.parse::<CoreSet>().expect_err(text);
        assert!(matches!(&error, CoresError::Syntax { found: f } if f == found), "{text}: {error}");
    }
    assert!(matches!(CoreSet::new([]), Err(CoresError::Empty)));
    assert!(matches!(CoreSet::new(0..), Err(CoresError::Syntax { .. })));
}

#[test]
fn each_thread_has_a_core_of_its_own_if_there_are_as_many() {
    let cores = set("1,4-5");
    let of = |threads| (0..threads).map(move |i| set("1,4-5").of_thread(i, threads).to_string());
    assert!(of(3).eq(["1", "4", "5"]));
    for threads in [1, 2, 4] {
        assert!(of(threads).all(|set| set == cores.to_string()), "{threads}");
    }
}

/// What Linux allows the calling thread.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn allowed() -> String {
    let status = std::fs::read_to_string("/proc/thread-self/status").expect("status");
    let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    line.expect("a list of cores").trim().to_owned()
}

#[test]
#[cfg(any(target_os = "linux", target_os = "android"))]
fn threads_of_a_pool_run_on_the_cores_asked_for() {
    let available = CoreSet::available().expect("affinity");
    let before = allowed();
    let one = CoreSet::new([available.cores()[0]]).expect("one core");
    for cores in [one, available] {
        for threads in [1, 2, cores.cores().len()] {
            let pool = Pool::on_cores(threads, &cores).expect("a pool");
            let pinned = pool.pin_caller().expect("pinned");
            let (all, seen) = (Barrier::new(threads), Mutex::new(BTreeMap::new()));
            // All tasks run at the same time, so that each thread takes one.
            pool.run(threads, &|_| {
                all.wait();
                seen.lock().expect("lock").insert(id(thread::current().id()), allowed());
            });
            let mut seen: Vec<String> = seen.into_inner().expect("lock").into_values().collect();
            let of = |i| cores.of_thread(i, threads).to_string();
            let mut expected: Vec<String> = (0..threads).map(of).collect();
            seen.sort();
            expected.sort();
            assert_eq!(seen, expected, "{threads} threads on cores {cores}");
            drop(pinned);
            assert_eq!(allowed(), before, "the caller keeps its own affinity");
        }
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn id(id: ThreadId) -> String {
    format!("{id:?}")
}

#[test]
#[cfg(any(target_os = "linux", target_os = "android"))]
fn an_absent_core_is_named_beside_those_that_exist() {
    let available = CoreSet::available().expect("affinity");
    let last = available.cores()[available.cores().len() - 1];
    let some = CoreSet::new([last, last + 1, last + 2]).expect("a set");
    let error = Pool::on_cores(2, &some).expect_err("absent cores").to_string();
    let absent = format!("there is no core {}-{} for this process", last + 1, last + 2);
    assert_eq!(error, format!("{absent}; it may use {available}"));
}
