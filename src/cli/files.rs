//! Files that a command writes: whole, or not at all.

use std::fs;
use std::path::Path;

use indicatif::HumanBytes;
use lapwing_traces::whole_file;

use super::failure::Failure;
use super::session::Session;

/// Writes a file. What was there before stays until the new one is whole.
pub(crate) fn write(path: &Path, bytes: &[u8], session: &Session) -> Result<(), Failure> {
    parent(path)?;
    whole_file::write(path, bytes).map_err(|error| Failure::file("write", path, &error))?;
    let size = HumanBytes(bytes.len() as u64);
    session.note(&format!("wrote {}, {size}", path.display()));
    Ok(())
}

/// Makes a folder if it is not there; its own folder must be.
pub(crate) fn make_folder(path: &Path) -> Result<(), Failure> {
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
