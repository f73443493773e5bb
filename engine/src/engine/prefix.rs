//! The prefix cache of an engine, and the file that keeps it between runs.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use lapwing_actors::prefix::{CachedText, KeptState, PrefixCache};
use lapwing_kernels::kv::{DuplicatePage, KvStore};

use super::opened::Opened;
use crate::devices::build::Shared;
use crate::error::Error;
use crate::prefix_file::{self, PrefixFileError};

/// File name extension of kept prefixes.
const EXTENSION: &str = "lwprefix";

/// Where an engine keeps its prefix cache.
pub(super) struct KeptPrefixes {
    cache: PrefixCache,
    path: PathBuf,
    owner: String,
}

/// The prefix cache of an engine, and where it is kept.
#[derive(Default)]
pub(super) struct Prefixes {
    pub(super) cache: Option<PrefixCache>,
    pub(super) kept: Option<KeptPrefixes>,
}

/// The prefix cache that the settings ask for, filled from its file if there is one, and the place where it is
/// kept. Adds to `notes` why a file is not used.
pub(super) fn open(shared: Shared<'_>, notes: &mut Vec<String>) -> Prefixes {
    let Opened { settings, file, chosen, .. } = shared.opened;
    let store = &shared.memory.kv;
    if settings.no_prefix_cache {
        return Prefixes::default();
    }
    if chosen.is_encoder {
        if settings.kept_prefixes.is_some() {
            let reason = "the model is an encoder, whose rows depend on all tokens of their text";
            notes.push(format!("prefixes are not kept: {reason}"));
        }
        return Prefixes::default();
    }
    let copies = Arc::clone(store) as Arc<dyn DuplicatePage>;
    let cache = PrefixCache::new(chosen.layout.page_rows, Some(copies));
    let only_in_memory = |cache| Prefixes { cache: Some(cache), kept: None };
    let Some(folder) = &settings.kept_prefixes else { return only_in_memory(cache) };
    let Some(weights) = file.identity() else {
        notes.push("prefixes are not kept: the weight file cannot be read again".to_owned());
        return only_in_memory(cache);
    };
    let subject = shared.opened.identity();
    let path = folder.join(subject.file_name()).with_extension(EXTENSION);
    let layout = &chosen.layout;
    let plan = (&settings.strategy, &settings.options, &settings.places);
    let owner = format!("{subject:?}\n{plan:?}\n{layout:?}\n{weights}");
    match prefix_file::read(&path, &owner, store.pool(), store) {
        Ok(texts) => {
            let mut tree = cache.tree();
            for CachedText { namespace, tokens, pages, states } in texts {
                tree.insert(&namespace, &tokens, &pages);
                for KeptState { rows, place } in states {
                    tree.insert_state(&namespace, &tokens[..rows], place);
                }
            }
            tracing::info!(path = %path.display(), pages = tree.pages(), "kept prefixes");
        }
        Err(PrefixFileError::Io(error)) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => {
            let path = path.display();
            notes.push(format!("the kept prefixes in {path} are not used: {error}"));
        }
    }
    Prefixes { cache: Some(cache.clone()), kept: Some(KeptPrefixes { cache, path, owner }) }
}

impl KeptPrefixes {
    /// Writes the prefix cache.
    pub(super) fn write(&self, store: &KvStore) -> Result<(), Error> {
        let texts = self.cache.tree().texts();
        let folder = self.path.parent().map_or(Ok(()), make_private);
        let written = folder.map_err(PrefixFileError::Io);
        let written =
            written.and_then(|()| prefix_file::write(&self.path, &self.owner, &texts, store));
        written.map_err(|error| Error::prefixes(self.path.clone(), error))
    }
}

/// Makes a folder that only its user can read, unless it exists.
fn make_private(folder: &std::path::Path) -> std::io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(folder)
}
