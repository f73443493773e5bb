//! The folder in which packed weights are kept between starts.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use lapwing_kernels::cpu::{PackCache, PackReport};
use lapwing_kernels::requant::Requant;
use lapwing_kernels::weights::WeightFile;

use crate::config::Settings;

/// Most bytes of a folder's files where nothing is said.
const BYTES_MAX: u64 = 16 << 30;
/// How the names of kept files end.
const EXTENSION: &str = "lwp";
/// Most characters of a model's name in that of its kept file.
const STEM_MAX: usize = 80;
/// After how long a file that is still being written is taken for one that nobody writes.
const ABANDONED: Duration = Duration::from_secs(3600);

/// How an engine's packed weights came into memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PackedWeights {
    /// They were mapped from [`file`](PackedWeights::file); else the engine has packed them.
    pub mapped: bool,
    /// Where they are kept; none without [`packed_cache`](crate::EngineBuilder::packed_cache), or
    /// where they could not be kept.
    pub file: Option<PathBuf>,
    /// What was wrong: a kept file that could not be used, or why none could be written. The engine
    /// works all the same.
    pub notes: Vec<String>,
}

/// A folder of kept files.
#[derive(Clone, Debug)]
pub(crate) struct PackedFolder {
    folder: PathBuf,
    file: PathBuf,
    bytes_max: u64,
}

impl PackedFolder {
    /// The one that the settings name.
    pub(crate) fn of(settings: &Settings) -> Option<PackedFolder> {
        let folder = settings.packed_cache.clone()?;
        let bytes_max = settings.packed_cache_max.unwrap_or(BYTES_MAX);
        let file = folder.join(file_name(&settings.model, settings.requant));
        Some(PackedFolder { folder, file, bytes_max })
    }

    /// Tells those who pack this file's weights.
    pub(crate) fn offer(&self, file: &WeightFile) {
        file.keep_packed(PackCache { path: self.file.clone(), bytes_max: self.bytes_max });
    }

    /// What became of the offer. Marks the file as used, and removes others until there is room.
    pub(crate) fn outcome(self, file: &WeightFile) -> PackedWeights {
        let Some(report) = file.pack_report() else { return PackedWeights::default() };
        let PackReport { mapped, read_error, write_error, .. } = &*report;
        let mut notes = Vec::new();
        if let Some(fault) = read_error {
            let path = self.file.display();
            notes.push(format!("the packed weights in {path} are not used: {fault}"));
        }
        if let Some(error) = write_error {
            notes.push(format!("the packed weights are not kept: {error}"));
        }
        let kept = write_error.is_none();
        let now = SystemTime::from(jiff::Timestamp::now());
        if *mapped {
            // Who may only read the folder neither marks nor removes anything.
            let marked = fs::File::open(&self.file).and_then(|file| file.set_modified(now));
            marked.unwrap_or_else(|error| tracing::debug!(%error, "use of packed weights"));
        }
        if kept && !*mapped {
            let trimmed = trim(&self.folder, &self.file, (self.bytes_max, now));
            notes.extend(trimmed.err().map(|error| {
                let folder = self.folder.display();
                format!("the folder of packed weights {folder} cannot be cleaned up: {error}")
            }));
        }
        for note in &notes {
            tracing::warn!(file = %self.file.display(), "{note}");
        }
        PackedWeights { mapped: *mapped, file: kept.then_some(self.file), notes }
    }
}

/// The model's name, and a checksum of where it lies: models of the same name have files of their own,
/// and so has each format that one is requantised to.
fn file_name(model: &Path, requant: Option<Requant>) -> String {
    let place = fs::canonicalize(model).unwrap_or_else(|_| model.to_owned());
    let stem = model.file_stem().unwrap_or_default().to_string_lossy();
    let stem: String = stem.chars().take(STEM_MAX).collect();
    let place = crc32fast::hash(place.as_os_str().as_encoded_bytes());
    let requant = requant.map_or_else(String::new, |format| format!("-{}", format.name()));
    format!("{stem}-{place:08x}{requant}.{EXTENSION}")
}

/// Removes files that were used least recently until all have at most `bytes_max` bytes, `keep`
/// excepted, and files that nobody has finished writing. The first that cannot be removed is the
/// error, after all the others.
fn trim(folder: &Path, keep: &Path, (bytes_max, now): (u64, SystemTime)) -> io::Result<()> {
    let mut kept = Vec::new();
    let mut bytes = 0;
    let mut removed = Ok(());
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        // Another process may have removed it.
        let Ok(data) = fs::symlink_metadata(&path) else { continue };
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let used = data.modified()?;
        if !data.is_file() {
        } else if PackCache::is_part(&name) {
            let age = now.duration_since(used).unwrap_or_default();
            if age > ABANDONED {
                removed = removed.and(remove(&path));
            }
        } else if path.extension().is_some_and(|extension| extension == EXTENSION) {
            bytes += data.len();
            kept.push((used, path, data.len()));
        }
    }
    kept.sort();
    for (_, path, len) in kept {
        if bytes > bytes_max && path != keep {
            match remove(&path) {
                Ok(()) => bytes -= len,
                Err(error) => removed = removed.and(Err(error)),
            }
        }
    }
    removed
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wrong_file_is_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        let now = SystemTime::from(jiff::Timestamp::now());
        let file = |name: &str, bytes: usize, age: u64| {
            let path = folder.path().join(name);
            fs::write(&path, vec![0; bytes]).expect("a file");
            let used = now - Duration::from_secs(age);
            fs::File::options()
                .write(true)
                .open(&path)
                .and_then(|file| file.set_modified(used))
                .expect("a time");
            path
        };
        let [old, mine, newer, newest] =
            [("a.lwp", 30), ("b.lwp", 90), ("c.lwp", 20), ("d.lwp", 10)]
                .map(|(name, age)| file(name, 100, age));
        let others = ["e.gguf", ".lapwing-new.part", "f.part"].map(|name| file(name, 1000, 600));
        let abandoned = file(".lapwing-old.part", 1000, 4000);
        let there = || [&old, &mine, &newer, &newest].map(|path| path.exists());
        trim(folder.path(), &mine, (400, now)).expect("trimmed");
        assert_eq!(there(), [true; 4], "all of them fit");
        trim(folder.path(), &mine, (399, now)).expect("trimmed");
        assert_eq!(there(), [false, true, true, true]);
        trim(folder.path(), &mine, (200, now)).expect("trimmed");
        assert_eq!(there(), [false, true, false, true]);
        trim(folder.path(), &mine, (0, now)).expect("trimmed");
        assert_eq!(there(), [false, true, false, false], "what is in use stays");
        assert!(others.iter().all(|path| path.exists()) && !abandoned.exists());
    }

    #[test]
    fn two_models_share_a_file() {
        let [a, b] =
            ["/x/model.gguf", "/y/model.gguf"].map(|path| file_name(Path::new(path), None));
        assert!(a != b && a.starts_with("model-") && a.ends_with(".lwp"), "{a} {b}");
        for format in Requant::ALL {
            let other = file_name(Path::new("/x/model.gguf"), Some(format));
            assert!(other != a && other.starts_with("model-"), "{other} {a}");
            assert!(file_name(Path::new(&"ü".repeat(300)), Some(format)).len() < 255);
        }
    }
}
