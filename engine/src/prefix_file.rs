//! A file of a prefix cache: the tokens of its texts, and their pages of keys and values.
//!
//! All numbers are little-endian. The head is followed by its CRC-32, and each page by its own:
//!
//! | head | |
//! |---|---|
//! | magic | 8 bytes, `LWPREFIX` |
//! | version | u32 |
//! | owner | u32 length and UTF-8: what the keys and values depend on |
//! | page bytes, pages | u64, u32 |
//! | texts | u32 |
//! | each text | u8 and, if it is 1, a namespace (u32 length and UTF-8); u32 tokens, each u32; u32 pages, each u32, an index of the pages in the file |

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::Path;
use std::sync::Arc;

use lapwing_actors::prefix::{CachedText, Namespace};
use lapwing_kernels::device::DeviceError;
use lapwing_kernels::kv::{KvPage, KvPool, KvStore};
use lapwing_traces::whole_file::write_with;
use thiserror::Error;

const MAGIC: &[u8; 8] = b"LWPREFIX";
/// Any change of the format, or of keys and values by other kernels, must raise it.
const VERSION: u32 = 1;

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
    let (mut places, mut pages) = (HashMap::new(), Vec::new());
    for page in texts.iter().flat_map(|text| &text.pages) {
        places.entry(page.id()).or_insert_with(|| {
            pages.push(page.id());
            pages.len() - 1
        });
    }
    let mut head = Vec::new();
    head.extend(MAGIC);
    head.extend(VERSION.to_le_bytes());
    put_text(&mut head, owner);
    let page_bytes = store.layout().page_bytes();
    head.extend((page_bytes as u64).to_le_bytes());
    put(&mut head, pages.len());
    put(&mut head, texts.len());
    for text in texts {
        head.push(u8::from(text.namespace.is_some()));
        text.namespace.iter().for_each(|name| put_text(&mut head, name));
        put(&mut head, text.tokens.len());
        text.tokens.iter().for_each(|token| head.extend(token.to_le_bytes()));
        put(&mut head, text.pages.len());
        text.pages.iter().for_each(|page| put(&mut head, places[&page.id()]));
    }
    write_with(path, |file: &mut BufWriter<File>| {
        put_checked(file, &head)?;
        let mut bytes = vec![0; page_bytes];
        for page in pages {
            store.read_page(page, &mut bytes)?;
            put_checked(file, &bytes)?;
        }
        Ok(())
    })
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

/// A text of a file; its pages are indices.
struct Listed {
    namespace: Namespace,
    tokens: Vec<u32>,
    pages: Vec<u32>,
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
    let mut from = Head {
        left: file.metadata()?.len(),
        from: BufReader::new(file),
        crc: crc32fast::Hasher::new(),
    };
    let listed = from.texts(owner, layout.page_bytes(), layout.page_rows)?;
    let mut pages: HashMap<u32, KvPage> = HashMap::new();
    let mut fitting = Vec::new();
    for text in listed.into_iter().rev() {
        let missing: Vec<u32> =
            text.pages.iter().copied().filter(|page| !pages.contains_key(page)).collect();
        let Ok(fresh) = pool.alloc(missing.len()) else { continue };
        pages.extend(missing.into_iter().zip(fresh));
        fitting.push(text);
    }
    from.fill(&pages, store)?;
    let filled = |text: Listed| {
        let pages = text.pages.iter().map(|page| pages[page].clone()).collect();
        CachedText { namespace: text.namespace, tokens: text.tokens, pages }
    };
    Ok(fitting.into_iter().rev().map(filled).collect())
}

/// Reads the head of a file, and then its pages.
struct Head {
    from: BufReader<File>,
    /// Bytes of the file that are not read.
    left: u64,
    crc: crc32fast::Hasher,
}

impl Head {
    /// The next bytes. Memory is taken for no more than the file has.
    fn bytes(&mut self, count: u64) -> Result<Vec<u8>, PrefixFileError> {
        if count > self.left {
            return Err(PrefixFileError::Damaged { what: "it ends too early" });
        }
        let mut bytes = vec![0; count as usize];
        self.from.read_exact(&mut bytes)?;
        self.left -= count;
        self.crc.update(&bytes);
        Ok(bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], PrefixFileError> {
        let bytes = self.bytes(N as u64)?;
        bytes.try_into().map_err(|_| PrefixFileError::Damaged { what: "it ends too early" })
    }

    fn number(&mut self) -> Result<u32, PrefixFileError> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    fn numbers(&mut self) -> Result<Vec<u32>, PrefixFileError> {
        let count = self.number()?;
        let bytes = self.bytes(u64::from(count) * 4)?;
        let (words, _) = bytes.as_chunks::<4>();
        Ok(words.iter().map(|word| u32::from_le_bytes(*word)).collect())
    }

    fn text(&mut self) -> Result<String, PrefixFileError> {
        let len = self.number()?;
        let text = String::from_utf8(self.bytes(u64::from(len))?);
        text.map_err(|_| PrefixFileError::Damaged { what: "a text is not UTF-8" })
    }

    /// Whether the next four bytes are the checksum of what was read since the last one.
    fn check(&mut self, what: &'static str) -> Result<(), PrefixFileError> {
        let computed = std::mem::take(&mut self.crc).finalize();
        let stored = self.number()?;
        self.crc = crc32fast::Hasher::new();
        if stored == computed { Ok(()) } else { Err(PrefixFileError::Damaged { what }) }
    }

    fn texts(
        &mut self,
        owner: &str,
        page_bytes: usize,
        page_rows: usize,
    ) -> Result<Vec<Listed>, PrefixFileError> {
        if &self.array::<8>()? != MAGIC {
            return Err(PrefixFileError::Damaged { what: "it does not begin as one" });
        }
        match self.number()? {
            VERSION => {}
            found => return Err(PrefixFileError::Version { found }),
        }
        let is_of_owner = self.text()? == owner;
        let bytes = u64::from_le_bytes(self.array()?);
        let (pages, texts) = (self.number()?, self.number()?);
        let mut listed = Vec::new();
        for _ in 0..texts {
            let namespace = match self.array()? {
                [0] => None,
                [1] => Some(Arc::from(self.text()?)),
                _ => return Err(PrefixFileError::Damaged { what: "a namespace" }),
            };
            let (tokens, of_text) = (self.numbers()?, self.numbers()?);
            let is_whole = tokens.len().div_ceil(page_rows) == of_text.len();
            if !is_whole || of_text.iter().any(|page| *page >= pages) {
                return Err(PrefixFileError::Damaged { what: "the pages of a text" });
            }
            listed.push(Listed { namespace, tokens, pages: of_text });
        }
        self.check("its head")?;
        match is_of_owner && bytes == page_bytes as u64 {
            true => Ok(listed),
            false => Err(PrefixFileError::Owner),
        }
    }

    /// Reads these pages, by their index in the file.
    fn fill(
        &mut self,
        pages: &HashMap<u32, KvPage>,
        store: &KvStore,
    ) -> Result<(), PrefixFileError> {
        let page_bytes = store.layout().page_bytes() as u64;
        let mut wanted: Vec<_> = pages.iter().collect();
        wanted.sort_unstable_by_key(|(index, _)| **index);
        let mut next = 0;
        for (index, page) in wanted {
            let skipped = u64::from(index - next) * (page_bytes + 4);
            if skipped > self.left {
                return Err(PrefixFileError::Damaged { what: "it ends too early" });
            }
            self.from.seek_relative(skipped as i64)?;
            self.left -= skipped;
            let bytes = self.bytes(page_bytes)?;
            self.check("a page")?;
            store.write_page(page.id(), &bytes);
            next = index + 1;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
