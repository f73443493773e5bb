//! A file of a prefix cache: the tokens of its texts, their pages of keys and values, and the states that are kept of them.
//!
//! All numbers are little-endian. The head is followed by its CRC-32, and each page and the states of each place by their own:
//!
//! | head | |
//! |---|---|
//! | magic | 8 bytes, `LWPREFIX` |
//! | version | u32 |
//! | owner | u32 length and UTF-8: what the keys and values depend on |
//! | page bytes, pages | u64, u32 |
//! | bytes of the states of a place, places | u64, u32 |
//! | texts | u32 |
//! | each text | u8 and, if it is 1, a namespace (u32 length and UTF-8); u32 tokens, each u32; u32 pages, each u32, an index of the pages in the file; u32 states, each u32 rows, u32 an index of the places in the file |

mod head;

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use lapwing_actors::prefix::{CachedText, KeptState};
use lapwing_kernels::device::DeviceError;
use lapwing_kernels::kv::{KvPage, KvPool, KvStore};
use lapwing_traces::whole_file::write_with;
use thiserror::Error;

use head::{Head, Listed};

const MAGIC: &[u8; 8] = b"LWPREFIX";
/// Any change of the format, or of keys and values by other kernels, must raise it.
const VERSION: u32 = 2;

/// Why a file of a prefix cache is not used, or could not be written.
#[derive(Debug, Error)]
pub(crate) enum PrefixFileError {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("it is damaged ({what})")]
    Damaged { what: &'static str },
    #[error("it has format {found}, and this program reads format {VERSION}")]
    Version { found: u32 },
    #[error("it belongs to other weights, devices or settings")]
    Owner,
    #[error(transparent)]
    Device(#[from] DeviceError),
}

/// Writes texts and their pages; an existing file is replaced.
pub(crate) fn write(
    path: &Path,
    owner: &str,
    texts: &[CachedText],
    store: &KvStore,
) -> Result<(), PrefixFileError> {
    let mut pages = Numbered::default();
    texts.iter().flat_map(|text| &text.pages).for_each(|page| pages.add(page));
    let mut places = Numbered::default();
    texts.iter().flat_map(|text| &text.states).for_each(|state| places.add(&state.place));
    let mut head = Vec::new();
    head.extend(MAGIC);
    head.extend(VERSION.to_le_bytes());
    put_text(&mut head, owner);
    let page_bytes = store.layout().page_bytes();
    head.extend((page_bytes as u64).to_le_bytes());
    put(&mut head, pages.ids.len());
    head.extend((store.layout().state_bytes() as u64).to_le_bytes());
    put(&mut head, places.ids.len());
    put(&mut head, texts.len());
    for text in texts {
        head.push(u8::from(text.namespace.is_some()));
        text.namespace.iter().for_each(|name| put_text(&mut head, name));
        put(&mut head, text.tokens.len());
        text.tokens.iter().for_each(|token| head.extend(token.to_le_bytes()));
        put(&mut head, text.pages.len());
        text.pages.iter().for_each(|page| put(&mut head, pages.numbers[&page.id()]));
        put(&mut head, text.states.len());
        for state in &text.states {
            put(&mut head, state.rows);
            put(&mut head, places.numbers[&state.place.id()]);
        }
    }
    write_with(path, |file: &mut BufWriter<File>| {
        put_checked(file, &head)?;
        let mut bytes = vec![0; page_bytes];
        for page in pages.ids {
            store.read_page(page, &mut bytes)?;
            put_checked(file, &bytes)?;
        }
        for place in places.ids {
            put_checked(file, &store.read_state(place)?)?;
        }
        Ok(())
    })
}

/// Pages, or places of states, in the order of the file.
#[derive(Default)]
struct Numbered {
    ids: Vec<u32>,
    numbers: HashMap<u32, usize>,
}

impl Numbered {
    fn add(&mut self, page: &KvPage) {
        self.numbers.entry(page.id()).or_insert_with(|| {
            self.ids.push(page.id());
            self.ids.len() - 1
        });
    }
}

fn put(to: &mut Vec<u8>, number: usize) {
    to.extend((number as u32).to_le_bytes());
}

fn put_text(to: &mut Vec<u8>, text: &str) {
    put(to, text.len());
    to.extend(text.as_bytes());
}

fn put_checked(file: &mut impl Write, bytes: &[u8]) -> Result<(), PrefixFileError> {
    file.write_all(bytes)?;
    Ok(file.write_all(&crc32fast::hash(bytes).to_le_bytes())?)
}

/// Reads a file: the most recently used texts whose pages fit into `pool`, the least recently used first.
/// Nothing is read of texts that do not fit.
pub(crate) fn read(
    path: &Path,
    owner: &str,
    pool: &KvPool,
    store: &KvStore,
) -> Result<Vec<CachedText>, PrefixFileError> {
    let layout = store.layout();
    let file = File::open(path)?;
    let mut from = Head::new(file)?;
    let (listed, page_count) = from.texts(owner, layout)?;
    let mut pages: HashMap<u32, KvPage> = HashMap::new();
    let mut fitting = Vec::new();
    for text in listed.into_iter().rev() {
        let missing: Vec<u32> =
            text.pages.iter().copied().filter(|page| !pages.contains_key(page)).collect();
        let Ok(fresh) = pool.alloc(missing.len()) else { continue };
        pages.extend(missing.into_iter().zip(fresh));
        fitting.push(text);
    }
    let mut places: HashMap<u32, KvPage> = HashMap::new();
    for (_, index) in fitting.iter().flat_map(|text| &text.states) {
        if let (false, Ok(mut fresh)) = (places.contains_key(index), store.state_pool().alloc(1)) {
            places.extend(fresh.pop().map(|place| (*index, place)));
        }
    }
    from.fill(&pages, layout.page_bytes() as u64, page_count, |page, bytes| {
        store.write_page(page, bytes);
    })?;
    let last = places.keys().max().map_or(0, |last| last + 1);
    from.fill(&places, layout.state_bytes() as u64, last, |place, bytes| {
        store.write_state(place, bytes);
    })?;
    let filled = |text: Listed| {
        let pages = text.pages.iter().map(|page| pages[page].clone()).collect();
        let kept = text.states.iter().filter_map(|(rows, index)| {
            Some(KeptState { rows: *rows, place: places.get(index)?.clone() })
        });
        let states = kept.collect();
        CachedText { namespace: text.namespace, tokens: text.tokens, pages, states }
    };
    Ok(fitting.into_iter().rev().map(filled).collect())
}

#[cfg(test)]
mod tests;
