//! Files of what could also be made anew, such as compiled programs: each holds the key of everything that its content depends
//! on, and a checksum, because some drivers crash on a damaged binary.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Bytes that a file begins with.
pub type Magic = [u8; 8];

/// The content of a file, or why there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kept {
    /// What was written with an equal key.
    Content(Vec<u8>),
    /// There is no file, or one of another key.
    Absent,
    /// The file cannot be used.
    Unusable(&'static str),
}

/// The path in a folder of a file with this key.
pub fn path_of(folder: &Path, name: &str, key: &str, extension: &str) -> PathBuf {
    folder.join(format!("{name}-{:08x}.{extension}", crc32fast::hash(key.as_bytes())))
}

/// Reads a file of at most `most` bytes.
pub fn read(path: &Path, magic: &Magic, key: &str, most: u64) -> Kept {
    let bytes = match fs::metadata(path) {
        Err(_) => return Kept::Absent,
        Ok(file) if file.len() > most => return Kept::Unusable("it is too large"),
        Ok(file) if !file.is_file() => return Kept::Unusable("it is no file"),
        Ok(_) => fs::read(path),
    };
    let Ok(bytes) = bytes else { return Kept::Unusable("it cannot be read") };
    match parse(&bytes, magic) {
        Some((stored, content)) if stored == key.as_bytes() => Kept::Content(content.to_vec()),
        // Another key with the same checksum.
        Some(_) => Kept::Absent,
        None => Kept::Unusable("it is damaged or of another version"),
    }
}

/// Writes a file, whole or not at all. A failure is no error, since the content can be made anew.
pub fn write(path: &Path, magic: &Magic, key: &str, content: &[u8]) {
    let write = || -> std::io::Result<()> {
        let folder = path.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(folder)?;
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        file.write_all(magic)?;
        file.write_all(&(key.len() as u64).to_le_bytes())?;
        file.write_all(key.as_bytes())?;
        file.write_all(&(content.len() as u64).to_le_bytes())?;
        file.write_all(&crc32fast::hash(content).to_le_bytes())?;
        file.write_all(content)?;
        file.persist(path)?;
        Ok(())
    };
    _ = write();
}

/// Key and content of a file; `None` if it is damaged.
fn parse<'a>(bytes: &'a [u8], magic: &Magic) -> Option<(&'a [u8], &'a [u8])> {
    fn number(bytes: &[u8]) -> Option<(usize, &[u8])> {
        let (number, rest) = bytes.split_first_chunk::<8>()?;
        Some((usize::try_from(u64::from_le_bytes(*number)).ok()?, rest))
    }
    let rest = bytes.strip_prefix(magic)?;
    let (len, rest) = number(rest)?;
    let (key, rest) = rest.split_at_checked(len)?;
    let (len, rest) = number(rest)?;
    let (checksum, content) = rest.split_first_chunk::<4>()?;
    let is_whole =
        content.len() == len && crc32fast::hash(content) == u32::from_le_bytes(*checksum);
    is_whole.then_some((key, content))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAGIC: Magic = *b"LPWTEST1";

    #[test]
    fn only_a_whole_file_of_the_same_key_is_used() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = path_of(&folder.path().join("inner"), "name", "key", "bin");
        assert_eq!(read(&path, &MAGIC, "key", 100), Kept::Absent);
        write(&path, &MAGIC, "key", b"content");
        assert_eq!(read(&path, &MAGIC, "key", 100), Kept::Content(b"content".to_vec()));
        assert_eq!(read(&path, &MAGIC, "another key", 100), Kept::Absent);
        assert_eq!(read(&path, &MAGIC, "key", 10), Kept::Unusable("it is too large"));
        let unusable = Kept::Unusable("it is damaged or of another version");
        assert_eq!(read(&path, b"LPWOTHER", "key", 100), unusable);
        let whole = fs::read(&path).expect("a file");
        for at in 0..whole.len() {
            let mut flipped = whole.clone();
            flipped[at] ^= 1;
            fs::write(&path, &flipped).expect("a file");
            assert!(!matches!(read(&path, &MAGIC, "key", 100), Kept::Content(_)), "byte {at}");
            fs::write(&path, &whole[..at]).expect("a file");
            assert!(!matches!(read(&path, &MAGIC, "key", 100), Kept::Content(_)), "{at} bytes");
        }
    }
}
