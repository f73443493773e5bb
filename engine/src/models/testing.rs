//! Shared helpers of the tests of fetching.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;

use super::{Claim, FetchError, FetchEvent, ModelCache, Progress, Site, Source};

/// A cache in its own folder.
pub(super) fn cache() -> (tempfile::TempDir, ModelCache) {
    let dir = tempfile::tempdir().unwrap();
    let cache = ModelCache::open(Some(dir.path().join("cache"))).unwrap();
    (dir, cache)
}

/// Stores all events.
#[derive(Debug, Default)]
pub(super) struct EventLog(pub(super) Vec<FetchEvent>);

impl Progress for EventLog {
    fn on_event(&mut self, event: FetchEvent) {
        self.0.push(event);
    }
}

impl EventLog {
    /// Bytes reported in the n-th phase opened by `Started` or `Unpacking`.
    pub(super) fn advanced(&self, phase: usize) -> u64 {
        let opens = |event: &FetchEvent| {
            matches!(event, FetchEvent::Started { .. } | FetchEvent::Unpacking { .. })
        };
        let mut open = None;
        let mut sum = 0;
        for event in &self.0 {
            if opens(event) {
                open = Some(open.map_or(0, |index: usize| index + 1));
            }
            if let FetchEvent::Advanced { bytes } = event
                && open == Some(phase)
            {
                sum += bytes;
            }
        }
        sum
    }

    pub(super) fn has(&self, wanted: impl Fn(&FetchEvent) -> bool) -> bool {
        self.0.iter().any(wanted)
    }
}

/// Pseudo-random bytes.
pub(super) fn noise(count: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    (0..count)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state.to_le_bytes()[4]
        })
        .collect()
}

/// SHA-256 in hex.
pub(super) fn hash(bytes: &[u8]) -> String {
    use sha2::Digest;
    sha2::Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A source that has the file in memory, and can stop after half of it.
#[derive(Debug)]
pub(super) struct Memory {
    pub(super) content: Vec<u8>,
    pub(super) claim: Claim,
    pub(super) pause: Duration,
    pub(super) stuck_halfway: bool,
    pub(super) deliveries: AtomicUsize,
}

impl Memory {
    /// A source whose statements match its content.
    pub(super) fn honest(content: &[u8]) -> Self {
        Self {
            content: content.to_vec(),
            claim: Claim { bytes: Some(content.len() as u64), sha256: Some(hash(content)) },
            pause: Duration::ZERO,
            stuck_halfway: false,
            deliveries: AtomicUsize::new(0),
        }
    }
}

#[async_trait]
impl Source for Memory {
    fn describe(&self) -> String {
        "memory".to_owned()
    }

    fn claim(&self) -> Claim {
        self.claim.clone()
    }

    async fn deliver(&self, site: &Site, progress: &mut dyn Progress) -> Result<Claim, FetchError> {
        self.deliveries.fetch_add(1, Ordering::SeqCst);
        let half = &self.content[..self.content.len() / 2];
        std::fs::write(site.file(), half).map_err(FetchError::io("write", site.file()))?;
        progress.on_event(FetchEvent::Started {
            name: site.name().to_owned(),
            bytes_total: self.claim.bytes,
        });
        progress.on_event(FetchEvent::Advanced { bytes: half.len() as u64 });
        tokio::time::sleep(self.pause).await;
        if self.stuck_halfway {
            std::future::pending::<()>().await;
        }
        std::fs::write(site.file(), &self.content).map_err(FetchError::io("write", site.file()))?;
        Ok(self.claim.clone())
    }
}
