//! How many cases a test tries: `cargo test` alone tries a part of them, so that it is quick, and
//! `LAPWING_TEST=full` (`tests/all.sh`) all.

/// Whether all cases are to be tried.
pub(crate) fn all() -> bool {
    std::env::var_os("LAPWING_TEST").is_some_and(|value| value == "full")
}

/// The number of cases of a test that tries `full` in all.
#[allow(dead_code, reason = "not every test program has such a test")]
pub(crate) fn cases<N>(quick: N, full: N) -> N {
    if all() { full } else { quick }
}
