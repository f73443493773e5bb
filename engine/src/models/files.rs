//! Creates files in the cache folder without following links: in a folder that others may write to, a
//! link at the expected place could lead to any file of this user.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::Path;

/// Creates an empty file, in place of any file or link of that name.
pub(super) fn create(path: &Path) -> io::Result<File> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => OpenOptions::new().write(true).create_new(true).open(path),
    }
}

/// Opens a regular file for writing, without changing it; creates it if there is none, or if a link is
/// in its place.
pub(super) fn open(path: &Path) -> io::Result<File> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_file() => {
            let mut options = OpenOptions::new();
            options.write(true);
            // A link that takes the file's place after the check above is not followed either.
            #[cfg(unix)]
            std::os::unix::fs::OpenOptionsExt::custom_flags(
                &mut options,
                rustix::fs::OFlags::NOFOLLOW.bits().cast_signed(),
            );
            options.open(path)
        }
        _ => create(path),
    }
}

/// Creates a folder and those above it; a link in its place is an error.
pub(super) fn create_dir(path: &Path) -> io::Result<()> {
    fs::create_dir_all(path)?;
    match fs::symlink_metadata(path)?.is_dir() {
        true => Ok(()),
        false => Err(io::Error::new(
            io::ErrorKind::NotADirectory,
            "it is a link, not a folder; remove it and fetch again",
        )),
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_link_in_place_of_a_file_is_replaced_and_its_target_stays() {
        let dir = tempfile::tempdir().unwrap();
        let (victim, place) = (dir.path().join("victim"), dir.path().join("place"));
        for make in [create, open] {
            fs::write(&victim, "mine").unwrap();
            symlink(&victim, &place).unwrap();
            make(&place).unwrap().write_all(b"fetched").unwrap();
            assert_eq!(fs::read(&victim).unwrap(), b"mine");
            assert_eq!(fs::read(&place).unwrap(), b"fetched");
            fs::remove_file(&place).unwrap();
        }
        fs::write(&place, "half").unwrap();
        open(&place).unwrap();
        assert_eq!(fs::read(&place).unwrap(), b"half", "an unfinished file is kept");
        symlink(dir.path(), dir.path().join("folder")).unwrap();
        let error = create_dir(&dir.path().join("folder")).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotADirectory);
    }
}
