//! Files that a command writes: whole, or not at all.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use indicatif::HumanBytes;

use super::super::failure::Failure;
use super::super::session::Session;

/// Writes a file. What was there before stays until the new one is whole.
pub(super) fn write(path: &Path, bytes: &[u8], session: &Session) -> Result<(), Failure> {
    parent(path)?;
    write_whole(path, bytes).map_err(|error| Failure::file("write", path, &error))?;
    let size = HumanBytes(bytes.len() as u64);
    session.note(&format!("wrote {}, {size}", path.display()));
    Ok(())
}

/// Makes a folder if it is not there; its own folder must be.
pub(super) fn make_folder(path: &Path) -> Result<(), Failure> {
    if path.is_dir() {
        return Ok(());
    }
    parent(path)?;
    fs::create_dir(path).map_err(|error| Failure::file("make the folder", path, &error))
}

/// Says clearly that the folder of a path is missing.
fn parent(path: &Path) -> Result<(), Failure> {
    match path.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.is_dir()) {
        None => Ok(()),
        Some(folder) => Err(Failure::failed(format!(
            "cannot write {}: there is no folder {}",
            path.display(),
            folder.display()
        ))
        .hint("make the folder first, or name another one")),
    }
}

fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    // The file behind a link is replaced, not the link; a pipe or a terminal is written into.
    let path = match fs::canonicalize(path) {
        Ok(path) if path.is_file() || path.is_dir() => path,
        Ok(path) => return fs::write(path, bytes),
        Err(_) => path.to_owned(),
    };
    if path.is_dir() {
        return Err(io::Error::new(io::ErrorKind::IsADirectory, "this is a folder"));
    }
    let beside = beside(&path);
    let written = fs::write(&beside, bytes).and_then(|()| fs::rename(&beside, &path));
    if written.is_err() {
        // The first error is the one to tell.
        let _ = fs::remove_file(&beside);
    }
    written
}

/// A name in the same folder, and so on the same disk.
fn beside(path: &Path) -> PathBuf {
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{}.part", std::process::id()));
    path.with_file_name(name)
}
