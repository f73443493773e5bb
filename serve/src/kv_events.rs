//! KV events: what the prefix cache of each model stores and removes, in vLLM's format, for routers that send requests to
//! where their beginning is known. docs/kv_events.md describes them.

mod address;
mod message;
mod msgpack;
mod publisher;
mod replay;
mod ring;
mod settings;
mod subscriber;
#[cfg(test)]
mod tests;
mod zmtp;

use std::time::{SystemTime, UNIX_EPOCH};

use tokio::net::TcpListener;
use tokio::sync::watch;

use super::app::Phase;
use super::config::ServeConfig;
use super::models::Models;
use super::start_error::ServeError;
use address::Address;
use publisher::Publisher;
use ring::Ring;

pub use settings::{KvEventsConfig, KvEventsForm};

/// Where the KV events of a model are published.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KvEventsAddress {
    /// Name of the model.
    pub model: String,
    /// Its PUB socket, as in `tcp://127.0.0.1:5557`.
    pub address: String,
    /// The ROUTER socket that repeats what was published.
    pub replay: Option<String>,
    /// Topic of the messages.
    pub topic: String,
}

/// Publishes the events of all models until the server ends. Returns where.
///
/// # Errors
/// When an address is none, cannot be listened on, or is reachable from other machines although that is not allowed.
pub(crate) async fn publish(
    config: &ServeConfig,
    models: &Models,
    phases: &watch::Sender<Phase>,
) -> Result<Vec<KvEventsAddress>, ServeError> {
    let KvEventsConfig { address, replay, topic, form, batches_max } = &config.kv_events;
    let Some(address) = address else {
        return match replay {
            None => Ok(Vec::new()),
            Some(_) => Err(ServeError::NoEffect {
                setting: "kv_events.replay",
                reason: "no events are published without kv_events.address (--kv-events)",
            }),
        };
    };
    let address = Address::of(address)?;
    let replay = replay.as_deref().map(Address::of).transpose()?;
    let mut published = Vec::new();
    for (index, spec) in models.specs().iter().enumerate() {
        let topic = topic.replace("{model}", &spec.name);
        let live = address.listen(index, config.public).await?;
        let replayed = match &replay {
            Some(replay) => Some(replay.listen(index, config.public).await?),
            None => None,
        };
        published.push(KvEventsAddress {
            model: spec.name.clone(),
            address: name_of(&live),
            replay: replayed.as_ref().map(name_of),
            topic: topic.clone(),
        });
        let ring = Ring::new(first_number(), *batches_max);
        let publisher = Publisher::new(topic, *form, ring);
        let running = publisher.run(models.clone(), index, [Some(live), replayed]);
        let mut phases = phases.subscribe();
        tokio::spawn(async move {
            tokio::select! {
                // The sender is gone when the last router is.
                _ = phases.wait_for(|phase| *phase == Phase::Stopping) => {}
                () = running => {}
            }
        });
    }
    Ok(published)
}

fn name_of(listener: &TcpListener) -> String {
    listener.local_addr().map(|address| format!("tcp://{address}")).unwrap_or_default()
}

/// Number of the first batch: microseconds since 1970, so that a server that is started again goes on with larger numbers, and
/// readers do not take its batches for old ones.
fn first_number() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(0)
}
