//! Publishes the events of a model while it is loaded, and says when it is not.

use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use lapwing_engine::kv_events::{CacheBatch, CacheEvent, CacheEvents};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::message::Writing;
use super::replay::Answering;
use super::ring::Ring;
use super::settings::KvEventsForm;
use super::subscriber;
use crate::models::Models;

/// Events that a batch has, as far as there are so many at once.
const EVENTS: usize = 256;

/// Connections to a socket; further ones are closed.
const CONNECTIONS_MAX: usize = 256;

/// A socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Live,
    Replay,
}

/// Publishes the events of a model.
#[derive(Clone, Debug)]
pub(super) struct Publisher {
    topic: Arc<str>,
    form: KvEventsForm,
    ring: Arc<Ring>,
}

impl Publisher {
    pub(super) fn new(topic: String, form: KvEventsForm, ring: Arc<Ring>) -> Publisher {
        Publisher { topic: topic.into(), form, ring }
    }

    /// Publishes the events of the model with this number for ever. The sockets are those for new batches and for repeated ones.
    pub(super) async fn run(self, models: Models, model: usize, sockets: [Option<TcpListener>; 2]) {
        let [live, replay] = sockets;
        tokio::join!(
            self.follow(&models, model),
            self.accept(live, Kind::Live),
            self.accept(replay, Kind::Replay),
        );
    }

    /// Accepts connections for ever.
    async fn accept(&self, listener: Option<TcpListener>, kind: Kind) {
        let Some(listener) = listener else { return };
        let mut connections = JoinSet::new();
        loop {
            let accepted = listener.accept().await;
            while connections.try_join_next().is_some() {}
            match accepted {
                Ok((stream, _)) if connections.len() < CONNECTIONS_MAX => {
                    connections.spawn(self.clone().serve(stream, kind));
                }
                Ok(_) => tracing::warn!("too many readers of KV events"),
                Err(error) => {
                    // The system may be out of file descriptors for a while.
                    tracing::warn!(%error, "a reader of KV events cannot be accepted");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }

    async fn serve(self, stream: TcpStream, kind: Kind) {
        let Publisher { topic, form, ring } = &self;
        let ended: io::Result<()> = match kind {
            Kind::Live => subscriber::serve(stream, ring, topic).await,
            Kind::Replay => Answering { ring, topic, form: *form }.serve(stream).await,
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "a reader of KV events has left");
        }
    }

    /// Follows the model whenever it is loaded.
    async fn follow(&self, models: &Models, model: usize) {
        loop {
            let changed = models.changed();
            let loaded = models.loaded().into_iter().find(|loaded| loaded.index == model);
            let followed = loaded.and_then(|loaded| {
                let has_groups = loaded.engine.cache_blocks().has_states;
                Some((loaded.engine.cache_events()?, Writing { form: self.form, has_groups }))
            });
            match followed {
                Some((events, writing)) => {
                    self.publish(events, writing).await;
                    let cleared: CacheBatch = [CacheEvent::Cleared].into();
                    self.push(writing, &[cleared]);
                }
                None => changed.await,
            }
        }
    }

    /// Publishes what an engine's cache stores and removes, until the engine ends.
    async fn publish(&self, mut events: CacheEvents, writing: Writing) {
        loop {
            let mut next = tokio::select! {
                batch = events.next() => match batch {
                    Some(batch) => Some(batch),
                    None => return,
                },
                () = self.ring.wanted() => {
                    events.start_again();
                    None
                }
            };
            let (mut batches, mut count) = (Vec::new(), 0);
            while let Some(batch) = next.take() {
                // What tells all begins a batch, so that readers can begin there.
                if batch.first() == Some(&CacheEvent::Cleared) && !batches.is_empty() {
                    self.push(writing, &std::mem::take(&mut batches));
                }
                count += batch.len();
                batches.push(batch);
                next = if count < EVENTS { events.try_next() } else { None };
            }
            if !batches.is_empty() {
                self.push(writing, &batches);
            }
        }
    }

    fn push(&self, writing: Writing, batches: &[CacheBatch]) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let is_whole = batches[0].first() == Some(&CacheEvent::Cleared);
        self.ring.push(writing.batch(now.as_secs_f64(), batches), is_whole);
    }
}
