//! Identity of clients.

use std::fmt;
use std::sync::Arc;

/// The client that sent a request, by name; requests without a name are those of one anonymous
/// client. Cheap to clone.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientId(Option<Arc<str>>);

impl ClientId {
    /// The client of requests without a name.
    pub fn anonymous() -> ClientId {
        ClientId(None)
    }

    /// The client's name; `None` for the anonymous one.
    pub fn name(&self) -> Option<&str> {
        self.0.as_deref()
    }
}

impl From<&str> for ClientId {
    fn from(name: &str) -> ClientId {
        ClientId(Some(name.into()))
    }
}

impl From<String> for ClientId {
    fn from(name: String) -> ClientId {
        ClientId(Some(name.into()))
    }
}

impl fmt::Display for ClientId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name().unwrap_or("anonymous"))
    }
}
