//! Addresses of sockets of ZeroMQ.

use std::net::SocketAddr;

use tokio::net::TcpListener;

use crate::start_error::ServeError;

/// An address to listen on.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Address {
    host: String,
    /// Port of the first model; 0 for any free one.
    port: u16,
}

impl Address {
    /// That of a text like `tcp://127.0.0.1:5557` or `tcp://*:5557`.
    ///
    /// # Errors
    /// When it has another form.
    pub(super) fn of(text: &str) -> Result<Address, ServeError> {
        let wrong = || ServeError::KvEventsAddress { address: text.to_owned() };
        let (host, port) =
            text.strip_prefix("tcp://").and_then(|rest| rest.rsplit_once(':')).ok_or_else(wrong)?;
        let port = port.parse().map_err(|_| wrong())?;
        match host {
            "" => Err(wrong()),
            "*" => Ok(Address { host: "0.0.0.0".to_owned(), port }),
            _ => Ok(Address { host: host.to_owned(), port }),
        }
    }

    /// A socket for the model with this number.
    ///
    /// # Errors
    /// When it cannot be listened on, or other machines reach it and `public` is false.
    pub(super) async fn listen(
        &self,
        model: usize,
        public: bool,
    ) -> Result<TcpListener, ServeError> {
        let port = usize::from(self.port) + if self.port == 0 { 0 } else { model };
        let listen = format!("tcp://{}:{port}", self.host);
        let fault = |source| ServeError::KvEventsListen { address: listen.clone(), source };
        let port = u16::try_from(port)
            .map_err(|error| fault(std::io::Error::other(format!("no such port: {error}"))))?;
        let host = self.host.trim_start_matches('[').trim_end_matches(']');
        let found = tokio::net::lookup_host((host, port)).await.map_err(fault)?;
        let found: Vec<SocketAddr> = found.collect();
        if !public && found.iter().any(|address| !address.ip().is_loopback()) {
            return Err(ServeError::KvEventsPublic { address: listen });
        }
        TcpListener::bind(&found[..]).await.map_err(fault)
    }
}
