//! The folder that caches packed weights between starts.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use lapwing_kernels::cpu::{self, BeyondMemory, PackCache, PackReport, PackedMemory};
use lapwing_kernels::graph::Graph;
use lapwing_kernels::kv::KvSharing;
use lapwing_kernels::requant::Requant;
use lapwing_kernels::weights::WeightFile;

use crate::config::Settings;
use crate::fit::free_memory;

/// Default maximum of the folder's total size, in bytes.
const BYTES_MAX: u64 = 16 << 30;
/// File name extension of cached files.
const EXTENSION: &str = "lwp";
/// Maximum characters of the model's name in the name of its cached file.
const STEM_MAX: usize = 80;
/// Age after which an unfinished file counts as abandoned by its writer.
const ABANDONED: Duration = Duration::from_secs(3600);

/// How an engine obtained its packed weights.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PackedWeights {
    /// Whether they were in [`file`](PackedWeights::file); otherwise the engine packed them.
    pub loaded: bool,
    /// Whether the file is mapped, so that processes share them; otherwise they are in memory of this process.
    pub mapped: bool,
    /// Whether all bytes of the file were read and checked at this start.
    pub checked: bool,
    /// Why the file is not mapped, though [`packed_memory`](crate::EngineBuilder::packed_memory) says so or leaves it open.
    pub not_mapped: Option<String>,
    /// The cached file; `None` without [`packed_cache`](crate::EngineBuilder::packed_cache), or if it
    /// could not be written.
    pub file: Option<PathBuf>,
    /// Set if they are larger than the memory that was free: they stay in the file, and are read from the disk when they are
    /// used. [`Engine::notes`](crate::Engine::notes) says so.
    pub beyond_memory: Option<BeyondMemory>,
    /// Problems: a cached file of weights or of a device's programs that could not be used, or the reason
    /// why none could be written. The engine works in either case.
    pub notes: Vec<String>,
}

/// A folder of cached files.
#[derive(Clone, Debug)]
pub(crate) struct PackedFolder {
    folder: PathBuf,
    file: PathBuf,
    bytes_max: u64,
    /// As the settings say.
    memory: Option<PackedMemory>,
}

impl Settings {
    /// The folder for compiled programs of devices: in that of packed weights.
    #[cfg_attr(
        not(any(feature = "opencl", feature = "openvino", feature = "qnn")),
        expect(dead_code, reason = "no device compiles")
    )]
    pub(crate) fn programs(&self) -> Option<PathBuf> {
        Some(self.packed_cache.as_ref()?.join("programs"))
    }
}

impl PackedWeights {
    /// Says that the weights are used from the disk, if they are.
    pub(crate) fn disk_note(&self) -> Option<String> {
        let (beyond, file) = (self.beyond_memory?, self.file.as_ref()?);
        let path = file.display();
        Some(format!(
            "the model is larger than memory: {beyond}; they stay in {path}, and are read from the disk when they are used"
        ))
    }
}

impl PackedFolder {
    /// Offers the folder that the settings name, if they name one, to the devices that pack the file's weights, and limits these to the free memory.
    pub(crate) fn offered(
        settings: &Settings,
        file: &WeightFile,
        graph: &Graph,
    ) -> Option<PackedFolder> {
        cpu::limit_packed(file, free_memory);
        let folder = PackedFolder::of(settings)?;
        // Without a limit of the caller's, weights that do not fit into memory may take as much of the disk as they need.
        let must_keep = free_memory().is_some_and(|free| cpu::packed_bytes(graph) > free);
        let bytes_max = match settings.packed_cache_max {
            None if must_keep => u64::MAX,
            _ => folder.bytes_max,
        };
        let memory = folder.memory.unwrap_or_default();
        cpu::keep_packed(file, PackCache { path: folder.file.clone(), bytes_max, memory });
        Some(folder)
    }

    /// The folder that the settings name.
    fn of(settings: &Settings) -> Option<PackedFolder> {
        let folder = settings.packed_cache.clone()?;
        let bytes_max = settings.packed_cache_max.unwrap_or(BYTES_MAX);
        let file = folder.join(file_name(&settings.model, settings.requant, settings.share_kv));
        Some(PackedFolder { folder, file, bytes_max, memory: settings.packed_memory })
    }

    /// Result of the offer. Marks the file as used, and removes other files until the size fits.
    pub(crate) fn outcome(self, file: &WeightFile) -> PackedWeights {
        let Some(report) = cpu::pack_report(file) else { return PackedWeights::default() };
        let PackReport { loaded, mapped, checked, not_mapped, read_error, write_error, .. } =
            &*report;
        let mut notes = Vec::new();
        if let Some(fault) = read_error {
            let path = self.file.display();
            notes.push(format!("the packed weights in {path} are not used: {fault}"));
        }
        if let Some(error) = write_error {
            notes.push(format!("the packed weights could not be saved: {error}"));
        }
        if let Some(reason) = not_mapped {
            let path = self.file.display();
            let note = format!("the packed weights in {path} are not mapped: {reason}");
            match self.memory {
                Some(_) => notes.push(note),
                None => tracing::info!("{note}"),
            }
        }
        let kept = write_error.is_none();
        let now = SystemTime::from(jiff::Timestamp::now());
        if *loaded {
            // A user with read access only can neither mark nor remove files.
            let marked = fs::File::open(self.used(*mapped)).and_then(|file| file.set_modified(now));
            marked.unwrap_or_else(|error| tracing::debug!(%error, "use of packed weights"));
        }
        if kept && !*loaded {
            let trimmed = trim(&self.folder, &self.file, self.bytes_max, now);
            notes.extend(trimmed.err().map(|error| {
                let folder = self.folder.display();
                format!("cannot clean up the folder of packed weights {folder}: {error}")
            }));
        }
        for note in &notes {
            tracing::warn!(file = %self.file.display(), "{note}");
        }
        PackedWeights {
            loaded: *loaded,
            mapped: *mapped,
            checked: *checked,
            not_mapped: not_mapped.as_ref().map(ToString::to_string),
            file: kept.then_some(self.file),
            beyond_memory: report.beyond,
            notes,
        }
    }

    /// The file whose time says when the weights were used: the marker, which is valid only as long as the other file keeps its
    /// time, or that file if it has none.
    fn used(&self, is_mapped: bool) -> PathBuf {
        let marker = PackCache::marker_of(&self.file);
        if is_mapped || marker.exists() { marker } else { self.file.clone() }
    }
}

/// File name made of the model's name, a checksum of its path, the requantised format and the sharing of
/// keys and values, so that models of the same name, and each choice of weights of one model, have
/// separate files.
fn file_name(model: &Path, requant: Option<Requant>, sharing: Option<KvSharing>) -> String {
    let place = fs::canonicalize(model).unwrap_or_else(|_| model.to_owned());
    let stem = model.file_stem().unwrap_or_default().to_string_lossy();
    let stem: String = stem.chars().take(STEM_MAX).collect();
    let place = crc32fast::hash(place.as_os_str().as_encoded_bytes());
    let requant = requant.map_or_else(String::new, |format| format!("-{}", format.name()));
    let sharing = sharing.map_or_else(String::new, |sharing| format!("-{sharing}"));
    format!("{stem}-{place:08x}{requant}{sharing}.{EXTENSION}")
}

/// Removes the least recently used files and their markers until the total is at most `bytes_max` bytes, except
/// `keep`, and removes abandoned unfinished files. Tries all of them; the first failure is the
/// error.
fn trim(folder: &Path, keep: &Path, bytes_max: u64, now: SystemTime) -> io::Result<()> {
    let mut kept = Vec::new();
    let mut bytes = 0;
    let mut removed = Ok(());
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        // Another process may have removed it.
        let Ok(data) = fs::symlink_metadata(&path) else { continue };
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut used = data.modified()?;
        if !data.is_file() {
        } else if PackCache::is_part(&name) {
            let age = now.duration_since(used).unwrap_or_default();
            if age > ABANDONED {
                removed = removed.and(remove(&path));
            }
        } else if path.extension().is_some_and(|extension| extension == EXTENSION) {
            let marker = fs::symlink_metadata(PackCache::marker_of(&path));
            used = marker.and_then(|marker| marker.modified()).map_or(used, |at| at.max(used));
            bytes += data.len();
            kept.push((used, path, data.len()));
        }
    }
    kept.sort();
    for (_, path, len) in kept {
        if bytes > bytes_max && path != keep {
            match remove(&path).and_then(|()| remove(&PackCache::marker_of(&path))) {
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
    fn least_recently_used_files_are_removed_first() {
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
        let marker = file("d.lwp.checked", 50, 10);
        let abandoned = file(".lapwing-old.part", 1000, 4000);
        let there = || [&old, &mine, &newer, &newest].map(|path| path.exists());
        trim(folder.path(), &mine, 400, now).expect("trimmed");
        assert_eq!(there(), [true; 4], "all of them fit");
        trim(folder.path(), &mine, 399, now).expect("trimmed");
        assert_eq!(there(), [false, true, true, true]);
        trim(folder.path(), &mine, 200, now).expect("trimmed");
        assert_eq!(there(), [false, true, false, true]);
        trim(folder.path(), &mine, 0, now).expect("trimmed");
        assert_eq!(there(), [false, true, false, false], "what is in use stays");
        assert!(!marker.exists(), "a marker without its file");
        assert!(others.iter().all(|path| path.exists()) && !abandoned.exists());
    }

    #[test]
    fn a_file_was_used_when_its_marker_was() {
        let folder = tempfile::tempdir().expect("a folder");
        let now = SystemTime::from(jiff::Timestamp::now());
        let file = |name: &str, age: u64| {
            let path = folder.path().join(name);
            fs::write(&path, [0; 100]).expect("a file");
            let used = now - Duration::from_secs(age);
            let file = fs::File::options().write(true).open(&path).expect("a file");
            file.set_modified(used).expect("a time");
            path
        };
        let [a, b, c] =
            [("a.lwp", 30), ("b.lwp", 20), ("c.lwp", 10)].map(|(name, age)| file(name, age));
        let marker = file("a.lwp.checked", 5);
        trim(folder.path(), &c, 200, now).expect("trimmed");
        assert!(a.exists() && marker.exists() && !b.exists() && c.exists());
    }

    #[test]
    fn each_model_and_format_has_its_own_file() {
        let [a, b] =
            ["/x/model.gguf", "/y/model.gguf"].map(|path| file_name(Path::new(path), None, None));
        assert!(a != b && a.starts_with("model-") && a.ends_with(".lwp"), "{a} {b}");
        for format in Requant::ALL {
            let other = file_name(Path::new("/x/model.gguf"), Some(format), None);
            assert!(other != a && other.starts_with("model-"), "{other} {a}");
            let most = KvSharing { layers: Some(usize::MAX), heads: Some(usize::MAX) };
            let name = file_name(Path::new(&"ü".repeat(300)), Some(format), Some(most));
            assert!(name.len() < 255, "{name}");
        }
        let shared = KvSharing { layers: Some(2), heads: None };
        assert_ne!(file_name(Path::new("/x/model.gguf"), None, Some(shared)), a);
    }
}
