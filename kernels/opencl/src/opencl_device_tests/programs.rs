//! Programs that do not compile, and files of compiled ones that are damaged.

use super::*;
use crate::program::{Origin, ProgramCache, Source};
use crate::session::Session;

#[test]
fn a_source_that_does_not_compile_is_an_error_with_the_compilers_log() {
    needs_driver!();
    let session = Session::open(&find("").expect("a device")).expect("a session");
    let source =
        Source { name: "broken", text: "kernel void f() { no_such_name(); }", options: "" };
    let error = ProgramCache::default().build(&session, &source).expect_err("an error");
    let text = error.to_string();
    assert!(text.contains("'broken'") && text.contains("no_such_name"), "{text}");
}

#[test]
fn a_damaged_file_of_a_program_is_compiled_anew() {
    needs_driver!();
    let session = Session::open(&find("").expect("a device")).expect("a session");
    let folder = tempfile::tempdir().expect("a folder");
    let cache = ProgramCache::new(Some(folder.path().to_owned()));
    let text = "kernel void f(global int *x) { x[get_global_id(0)] = 7; }";
    let source = Source { name: "f", text, options: "" };
    let build = || cache.build(&session, &source).expect("a program");
    let (program, origin) = build();
    assert_eq!(origin, Origin::Source);
    session.kernel(&program, "f").expect("a kernel");
    cache.save(&session, &source, &program);
    assert_eq!(build().1, Origin::Cache);
    let path = std::fs::read_dir(folder.path()).expect("files").next().expect("a file");
    let path = path.expect("a file").path();
    let good = std::fs::read(&path).expect("the file");
    let flipped = {
        let mut bytes = good.clone();
        *bytes.last_mut().expect("bytes") ^= 1;
        bytes
    };
    let longer = [&good[..], b"x"].concat();
    let bad: [&[u8]; 6] = [&good[..good.len() / 2], &good[..5], &[], &flipped, &longer, b"other"];
    for bad in bad {
        std::fs::write(&path, bad).expect("a damaged file");
        assert_eq!(
            build().1,
            Origin::Refused("it is damaged or of another version"),
            "{} bytes",
            bad.len()
        );
        assert!(!path.exists(), "a damaged file is removed");
    }
    // A marker beside a good file: the driver did not survive the last attempt.
    std::fs::write(&path, &good).expect("the file");
    std::fs::write(path.with_extension("loading"), b"").expect("a marker");
    assert_eq!(build().1, Origin::Refused("the driver did not survive it"));
    // Another source of the same name is another file.
    let other = Source { options: "-DX=1", ..source.clone() };
    std::fs::write(&path, &good).expect("the file");
    assert_eq!(cache.build(&session, &other).expect("a program").1, Origin::Source);
    assert_eq!(build().1, Origin::Cache);
}
