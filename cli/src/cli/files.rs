//! Writes output files atomically.

use std::fs;
use std::path::Path;

use indicatif::HumanBytes;
use lapwing_traces::whole_file;

use super::failure::Failure;
use super::session::Session;

/// Writes a file atomically: an existing file stays until the new one is complete.
pub(crate) fn write(path: &Path, bytes: &[u8], session: &Session) -> Result<(), Failure> {
    parent(path)?;
    whole_file::write(path, bytes).map_err(|error| Failure::file("write", path, &error))?;
    let size = HumanBytes(bytes.len() as u64);
    session.note(&format!("wrote {}, {size}", path.display()));
    Ok(())
}

/// Creates a folder if it does not exist. Its parent must exist.
pub(crate) fn make_folder(path: &Path) -> Result<(), Failure> {
    if path.is_dir() {
        return Ok(());
    }
    parent(path)?;
    fs::create_dir(path).map_err(|error| Failure::file("create the folder", path, &error))
}

/// Checks that the folder of a path exists.
pub(crate) fn parent(path: &Path) -> Result<(), Failure> {
    match path.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.is_dir()) {
        None => Ok(()),
        Some(folder) => Err(Failure::failed(format!(
            "cannot write {}: the folder {} does not exist",
            path.display(),
            folder.display()
        ))
        .hint("create the folder first, or use another one")),
    }
}
