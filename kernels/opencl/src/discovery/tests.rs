//! What can be wrong with the paths of libraries that a user names.

use super::*;

#[test]
fn paths_that_name_no_library_are_refused_with_each_that_was_tried() {
    let cases = [
        ("no-such.so", &["'no-such.so'"][..]),
        ("/no/such.so;no-other.so", &["'/no/such.so'", "'no-other.so'"]),
        ("", &["is empty"]),
        ("no-such.so;", &["'no-such.so'", "is empty"]),
        ("no-such.so;;no-other.so", &["'no-such.so'", "is empty"]),
        // Not the syntax of PATH.
        ("no-such.so:no-other.so", &["'no-such.so:no-other.so'"]),
        (concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"), &["Cargo.toml'"]),
    ];
    for (paths, wanted) in cases {
        let error = check_named(OsStr::new(paths)).expect_err(paths);
        let text = error.to_string();
        assert!(matches!(error, OpenClError::NamedLibrary { .. }), "{text}");
        assert!(wanted.iter().all(|wanted| text.contains(wanted)), "{paths}: {text}");
    }
}

#[cfg(unix)]
#[test]
fn paths_that_are_no_text_are_refused() {
    use std::os::unix::ffi::OsStrExt;
    let error = check_named(OsStr::from_bytes(b"no-\xff.so")).expect_err("no text");
    assert!(error.to_string().contains("not UTF-8"), "{error}");
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[test]
fn one_path_that_names_a_library_suffices_if_no_empty_one_is_before_it() {
    for (paths, is_good) in [
        ("libc.so.6", true),
        ("no-such.so;libc.so.6", true),
        ("libc.so.6;", true),
        (";libc.so.6", false),
    ] {
        assert_eq!(check_named(OsStr::new(paths)).is_ok(), is_good, "{paths}");
    }
}
