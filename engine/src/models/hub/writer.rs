//! Writes the partial file of a transfer, and decides whether an earlier one can be continued.

use std::fs::{self, File};
use std::io::{Seek, SeekFrom, Write};

use super::headers::Headers;
use crate::models::blocking;
use crate::models::error::FetchError;
use crate::models::files;
use crate::models::source::Site;

/// Bytes buffered before a write.
const BUFFER_BYTES: usize = 1 << 20;

/// Appends to the site's file on the blocking pool. Each write holds the site, so no other fetch
/// can touch the file during a write, even after this writer is dropped.
pub(super) struct Writer {
    site: Site,
    file: Option<File>,
    buffer: Vec<u8>,
    written: u64,
}

impl Writer {
    /// Continues the site's file if it is the beginning of exactly this version, otherwise starts
    /// over.
    pub(super) fn open(site: Site, headers: &Headers) -> Result<Self, FetchError> {
        let path = site.file();
        let mark = site.dir().join("version");
        let version = headers.version();
        let mut file = files::open(&path).map_err(FetchError::io("open", &path))?;
        let length = file.metadata().map_err(FetchError::io("look at", &path))?.len();
        let same = fs::read_to_string(&mark).is_ok_and(|found| found == version);
        let written = if same && length <= headers.bytes { length } else { 0 };
        if written == 0 {
            file.set_len(0).map_err(FetchError::io("empty", &path))?;
            files::create(&mark)
                .and_then(|mut file| file.write_all(version.as_bytes()))
                .map_err(FetchError::io("write", &mark))?;
        }
        file.seek(SeekFrom::Start(written)).map_err(FetchError::io("seek in", &path))?;
        Ok(Self { site, file: Some(file), buffer: Vec::with_capacity(BUFFER_BYTES), written })
    }

    /// Total bytes accepted.
    pub(super) fn bytes(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    /// Appends bytes.
    pub(super) async fn push(&mut self, chunk: &[u8]) -> Result<(), FetchError> {
        self.buffer.extend_from_slice(chunk);
        if self.buffer.len() < BUFFER_BYTES {
            return Ok(());
        }
        self.flush().await
    }

    /// Writes all accepted bytes to the file system.
    pub(super) async fn flush(&mut self) -> Result<(), FetchError> {
        let buffer = std::mem::take(&mut self.buffer);
        let count = buffer.len() as u64;
        self.buffer = self
            .with_file(move |file| {
                file.write_all(&buffer)?;
                let mut buffer = buffer;
                buffer.clear();
                Ok(buffer)
            })
            .await?;
        self.written += count;
        Ok(())
    }

    /// Discards everything.
    pub(super) async fn restart(&mut self) -> Result<(), FetchError> {
        self.buffer.clear();
        self.with_file(|file| file.set_len(0).and_then(|()| file.rewind())).await?;
        self.written = 0;
        Ok(())
    }

    async fn with_file<T: Send + 'static>(
        &mut self,
        work: impl FnOnce(&mut File) -> std::io::Result<T> + Send + 'static,
    ) -> Result<T, FetchError> {
        let path = self.site.file();
        let Some(mut file) = self.file.take() else {
            return Err(FetchError::WorkerDied {
                detail: "its file was lost by an earlier failure".to_owned(),
            });
        };
        let site = self.site.clone();
        let (file, value) = blocking::run(move |_| {
            let value = work(&mut file).map_err(FetchError::io("write", path))?;
            drop(site);
            Ok((file, value))
        })
        .await?;
        self.file = Some(file);
        Ok(value)
    }
}
