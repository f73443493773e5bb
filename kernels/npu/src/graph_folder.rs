//! Prepared graphs, kept on disk: another start of the same program takes them from there.

use std::fs;
use std::path::PathBuf;

use super::backend::{NpuBackend, PreparedGraph};
use super::pace::Pace;
use super::spec::GraphSpec;
use lapwing_model::device::{GraphKey, ModelId};
pub(crate) use lapwing_model::kept_file::{self, Kept, Magic};
use lapwing_model::weights::WeightFile;

const MAGIC: &Magic = b"LPWGRP01";
const EXTENSION: &str = "graph";

const PACE_MAGIC: &Magic = b"LPWPAC01";
const PACE_EXTENSION: &str = "pace";

/// Most bytes of a folder. The files that were written first are removed when there are more.
const FOLDER_MAX: u64 = 16 << 30;

/// Files that are larger are not read.
const FILE_MAX: u64 = 2 << 30;

/// A folder of graphs that have been checked.
#[derive(Clone, Debug)]
pub(super) struct GraphFolder {
    folder: PathBuf,
    backend: String,
    /// Everything on which graphs depend, apart from their nodes.
    of: String,
}

/// Where a graph came from.
pub(super) enum Found {
    /// From the folder. It was checked before it was written.
    Graph(Box<dyn PreparedGraph>),
    Absent,
    /// There is a file that cannot be used.
    Refused,
}

impl GraphFolder {
    /// The folder of a back end and a model; `None` if its graphs cannot be kept.
    pub(super) fn new(
        folder: PathBuf,
        backend: &dyn NpuBackend,
        file: &WeightFile,
    ) -> Option<GraphFolder> {
        let facts = [env!("CARGO_PKG_VERSION"), &backend.export_key()?, &file.identity()?];
        Some(GraphFolder { folder, backend: backend.info().name.clone(), of: facts.join("\0") })
    }

    /// Takes a graph from the folder.
    pub(super) fn load(&self, spec: &GraphSpec, backend: &mut dyn NpuBackend) -> Found {
        let key = self.key(spec);
        let path = kept_file::path_of(&self.folder, &self.backend, &key, EXTENSION);
        let content = match kept_file::read(&path, MAGIC, &key, FILE_MAX) {
            Kept::Content(content) => content,
            Kept::Absent => return Found::Absent,
            Kept::Unusable(_) => {
                _ = fs::remove_file(path);
                return Found::Refused;
            }
        };
        match backend.import(spec, &content) {
            Ok(graph) => Found::Graph(graph),
            Err(_) => {
                _ = fs::remove_file(path);
                Found::Refused
            }
        }
    }

    /// Whether a graph is in the folder, complete. One without output channels computes nothing and is not kept.
    pub(super) fn has(&self, spec: &GraphSpec) -> bool {
        let key = self.key(spec);
        let path = kept_file::path_of(&self.folder, &self.backend, &key, EXTENSION);
        spec.outputs.iter().all(|port| port.width == 0)
            || matches!(kept_file::read(&path, MAGIC, &key, FILE_MAX), Kept::Content(_))
    }

    /// Whether there is a file of a graph, which need not be complete.
    pub(super) fn may_have(&self, spec: &GraphSpec) -> bool {
        kept_file::path_of(&self.folder, &self.backend, &self.key(spec), EXTENSION).exists()
    }

    /// The pace of earlier starts.
    pub(super) fn pace(&self) -> Option<Pace> {
        match kept_file::read(&self.pace_path(), PACE_MAGIC, &self.of, FILE_MAX) {
            Kept::Content(content) => Pace::from_bytes(&content),
            Kept::Absent | Kept::Unusable(_) => None,
        }
    }

    /// Keeps the pace for later starts. A failure is no error: it is measured again.
    pub(super) fn save_pace(&self, pace: Pace) {
        kept_file::write(&self.pace_path(), PACE_MAGIC, &self.of, &pace.to_bytes());
    }

    /// Beside the folder, which holds graphs only.
    fn pace_path(&self) -> PathBuf {
        let folder = self.folder.with_file_name("graph-times");
        kept_file::path_of(&folder, &self.backend, &self.of, PACE_EXTENSION)
    }

    /// Writes a graph that has been checked. A failure is no error: the next start prepares it.
    pub(super) fn save(&self, spec: &GraphSpec, graph: &mut dyn PreparedGraph) {
        let Some(content) = graph.export() else { return };
        let key = self.key(spec);
        self.make_room(content.len() as u64);
        let path = kept_file::path_of(&self.folder, &self.backend, &key, EXTENSION);
        kept_file::write(&path, MAGIC, &key, &content);
    }

    fn key(&self, spec: &GraphSpec) -> String {
        // The number of a model in its engine says nothing about it.
        let key = GraphKey { model: ModelId::default(), ..spec.key.clone() };
        format!("{}\0{:?}", self.of, GraphSpec { key, ..spec.clone() })
    }

    /// Removes the files that were written first, until `bytes` fit.
    fn make_room(&self, bytes: u64) {
        let Ok(entries) = fs::read_dir(&self.folder) else { return };
        let file = |entry: fs::DirEntry| {
            let path = entry.path();
            let about = entry.metadata().ok()?;
            let is_graph = path.extension().is_some_and(|extension| extension == EXTENSION);
            is_graph.then_some((about.modified().ok()?, about.len(), path))
        };
        let mut files: Vec<_> = entries.filter_map(|entry| file(entry.ok()?)).collect();
        files.sort_unstable();
        let mut all = bytes + files.iter().map(|(_, bytes, _)| bytes).sum::<u64>();
        for (_, bytes, path) in files {
            if all <= FOLDER_MAX {
                break;
            }
            if fs::remove_file(path).is_ok() {
                all -= bytes;
            }
        }
    }
}
