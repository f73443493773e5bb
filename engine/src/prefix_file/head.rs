//! Reading a file of a prefix cache.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::sync::Arc;

use lapwing_actors::prefix::Namespace;
use lapwing_kernels::kv::{KvLayout, KvPage};

use super::{MAGIC, PrefixFileError, VERSION};

/// A text of a file; its pages and places are indices.
pub(super) struct Listed {
    pub(super) namespace: Namespace,
    pub(super) tokens: Vec<u32>,
    pub(super) pages: Vec<u32>,
    pub(super) states: Vec<(usize, u32)>,
}

/// Reads the head of a file, and then its pages.
pub(super) struct Head {
    from: BufReader<File>,
    /// Bytes of the file that are not read.
    left: u64,
    crc: crc32fast::Hasher,
}

impl Head {
    pub(super) fn new(file: File) -> io::Result<Head> {
        let (left, crc) = (file.metadata()?.len(), crc32fast::Hasher::new());
        Ok(Head { left, from: BufReader::new(file), crc })
    }

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

    pub(super) fn texts(
        &mut self,
        owner: &str,
        layout: &KvLayout,
    ) -> Result<(Vec<Listed>, u32), PrefixFileError> {
        if &self.array::<8>()? != MAGIC {
            return Err(PrefixFileError::Damaged { what: "it does not begin as one" });
        }
        match self.number()? {
            VERSION => {}
            found => return Err(PrefixFileError::Version { found }),
        }
        let is_of_owner = self.text()? == owner;
        let bytes = u64::from_le_bytes(self.array()?);
        let pages = self.number()?;
        let state_bytes = u64::from_le_bytes(self.array()?);
        let (places, texts) = (self.number()?, self.number()?);
        let mut listed = Vec::new();
        for _ in 0..texts {
            let namespace = match self.array()? {
                [0] => None,
                [1] => Some(Arc::from(self.text()?)),
                _ => return Err(PrefixFileError::Damaged { what: "a namespace" }),
            };
            let (tokens, of_text) = (self.numbers()?, self.numbers()?);
            let is_whole = layout.pages_for(tokens.len()) == of_text.len();
            if !is_whole || of_text.iter().any(|page| *page >= pages) {
                return Err(PrefixFileError::Damaged { what: "the pages of a text" });
            }
            let mut states = Vec::new();
            for _ in 0..self.number()? {
                let (rows, place) = (self.number()? as usize, self.number()?);
                if rows == 0 || rows > tokens.len() || place >= places {
                    return Err(PrefixFileError::Damaged { what: "the states of a text" });
                }
                states.push((rows, place));
            }
            listed.push(Listed { namespace, tokens, pages: of_text, states });
        }
        self.check("its head")?;
        let sizes = [layout.page_bytes() as u64, layout.state_bytes() as u64];
        match is_of_owner && [bytes, state_bytes] == sizes {
            true => Ok((listed, pages)),
            false => Err(PrefixFileError::Owner),
        }
    }

    /// Reads these pages (or places of states) of so many bytes, by their index, and goes to the end of all of them, `count`.
    pub(super) fn fill(
        &mut self,
        pages: &HashMap<u32, KvPage>,
        page_bytes: u64,
        count: u32,
        mut write: impl FnMut(u32, &[u8]),
    ) -> Result<(), PrefixFileError> {
        let mut wanted: Vec<_> = pages.iter().collect();
        wanted.sort_unstable_by_key(|(index, _)| **index);
        let mut next = 0;
        for (index, page) in wanted {
            self.skip(u64::from(index - next) * (page_bytes + 4))?;
            let bytes = self.bytes(page_bytes)?;
            self.check("a page")?;
            write(page.id(), &bytes);
            next = index + 1;
        }
        self.skip(u64::from(count - next) * (page_bytes + 4))
    }

    fn skip(&mut self, bytes: u64) -> Result<(), PrefixFileError> {
        if bytes > self.left {
            return Err(PrefixFileError::Damaged { what: "it ends too early" });
        }
        self.from.seek_relative(bytes as i64)?;
        self.left -= bytes;
        Ok(())
    }
}
