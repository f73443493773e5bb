//! Writes a file completely or not at all.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Writes a file. An existing file is replaced atomically: it is never seen half written, and stays
/// unchanged if writing fails. A symbolic link stays, and its target is replaced. A device or pipe
/// is written in place.
///
/// # Errors
///
/// I/O errors of the operating system; also if the path is a folder or a read-only file.
pub fn write(path: impl AsRef<Path>, bytes: &[u8]) -> io::Result<()> {
    write_with(path, |file| file.write_all(bytes))
}

/// As [`write()`], for contents that `fill` writes piece by piece.
///
/// # Errors
///
/// As [`write()`], and those of `fill`.
pub fn write_with<E: From<io::Error>>(
    path: impl AsRef<Path>,
    fill: impl FnOnce(&mut BufWriter<File>) -> Result<(), E>,
) -> Result<(), E> {
    let path = path.as_ref();
    match target(path)? {
        Target::InPlace => filled(File::create(path)?, fill).map(|_| ()),
        Target::Replaced(path) => replace(&path, fill),
    }
}

/// Checks whether [`write()`] is likely to succeed, without opening an existing file (opening a
/// pipe would block). Leaves no trace.
///
/// # Errors
///
/// The error that [`write()`] would return.
pub fn check(path: impl AsRef<Path>) -> io::Result<()> {
    match target(path.as_ref())? {
        Target::InPlace => Ok(()),
        Target::Replaced(path) => fs::remove_file(create_beside(&path)?.0),
    }
}

/// How a path is written.
enum Target {
    /// The existing file is opened.
    InPlace,
    /// This file is replaced by a new one.
    Replaced(PathBuf),
}

fn target(path: &Path) -> io::Result<Target> {
    match fs::metadata(path) {
        Ok(there) if there.is_dir() => {
            Err(io::Error::new(io::ErrorKind::IsADirectory, "the path is a folder"))
        }
        Ok(there) if there.permissions().readonly() => {
            Err(io::Error::new(io::ErrorKind::PermissionDenied, "the file is read-only"))
        }
        // The file behind a descriptor may no longer have a path.
        Ok(there) if there.is_file() => {
            Ok(fs::canonicalize(path).map_or(Target::InPlace, Target::Replaced))
        }
        Ok(_) => Ok(Target::InPlace),
        // A dangling link: opening it creates its target.
        Err(_) if path.is_symlink() => Ok(Target::InPlace),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Ok(Target::Replaced(path.to_owned()))
        }
        Err(error) => Err(error),
    }
}

fn replace<E: From<io::Error>>(
    path: &Path,
    fill: impl FnOnce(&mut BufWriter<File>) -> Result<(), E>,
) -> Result<(), E> {
    let (beside, file) = create_beside(path)?;
    let written = filled(file, fill).and_then(|file| {
        file.sync_all()?;
        Ok(fs::rename(&beside, path)?)
    });
    if written.is_err() {
        // The first error is the one to report.
        let _ = fs::remove_file(&beside);
    }
    written
}

fn filled<E: From<io::Error>>(
    file: File,
    fill: impl FnOnce(&mut BufWriter<File>) -> Result<(), E>,
) -> Result<File, E> {
    let mut out = BufWriter::new(file);
    fill(&mut out)?;
    Ok(out.into_inner().map_err(io::IntoInnerError::into_error)?)
}

/// Creates a file in the same folder, and so on the same file system.
fn create_beside(path: &Path) -> io::Result<(PathBuf, File)> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    if path.file_name().is_none() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the path names no file"));
    }
    loop {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        // Its length is independent of the file's name, which may be as long as the system allows.
        let beside = path.with_file_name(format!(".lapwing-{}-{number}.part", std::process::id()));
        match OpenOptions::new().write(true).create_new(true).open(&beside) {
            // Left behind by an earlier process with the same id.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
            Ok(file) => return Ok((beside, file)),
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_link_stays_and_its_target_is_written() {
        let folder = tempfile::tempdir().expect("a folder");
        let [file, link, to_nothing, made] =
            ["file", "link", "to-nothing", "made"].map(|name| folder.path().join(name));
        fs::write(&file, "before").expect("write");
        std::os::unix::fs::symlink("file", &link).expect("a link");
        std::os::unix::fs::symlink("made", &to_nothing).expect("a link");
        for path in [&link, &to_nothing] {
            check(path).expect("it can be written");
            write(path, b"after").expect("it is written");
            assert!(path.is_symlink());
        }
        assert_eq!(fs::read(&file).expect("a file"), b"after");
        assert_eq!(fs::read(&made).expect("a file"), b"after");
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 4);
    }

    #[test]
    fn a_device_is_written_in_place() {
        check("/dev/null").expect("it can be written");
        let folder = tempfile::tempdir().expect("a folder");
        let link = folder.path().join("null");
        std::os::unix::fs::symlink("/dev/null", &link).expect("a link");
        write(&link, b"gone").expect("it is written");
        assert!(link.is_symlink() && !fs::metadata("/dev/null").expect("a device").is_file());
    }

    #[test]
    fn a_check_does_not_block_on_a_pipe() {
        let folder = tempfile::tempdir().expect("a folder");
        let pipe = folder.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.expect("mkfifo").success());
        check(&pipe).expect("it can be written");
        let reader = std::process::Command::new("cat")
            .arg(&pipe)
            .stdout(std::process::Stdio::piped())
            .spawn()
            .expect("cat");
        write(&pipe, b"through").expect("it is written");
        assert_eq!(reader.wait_with_output().expect("cat ends").stdout, b"through");
    }

    #[test]
    fn check_returns_the_error_that_write_would() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().expect("a folder");
        let (file, missing) = (folder.path().join("file"), folder.path().join("no/file"));
        fs::write(&file, "before").expect("write");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o400)).expect("rights");
        for path in [folder.path(), &file, &missing, Path::new("")] {
            let found = check(path).expect_err("it cannot be written").kind();
            assert_eq!(write(path, b"x").expect_err("it is not written").kind(), found);
        }
        assert_eq!(fs::read(&file).expect("a file"), b"before");
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1);
    }
}
