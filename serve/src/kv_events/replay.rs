//! The ROUTER socket: a connection of a reader that asks for batches again.

use std::io;

use tokio::net::TcpStream;

use super::ring::Ring;
use super::settings::KvEventsForm;
use super::zmtp::{Received, Writer, greet};

/// The number that marks the end of an answer.
const END: [u8; 8] = [0xff; 8];

/// What the answers of a model look like.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answering<'a> {
    pub(super) ring: &'a Ring,
    pub(super) topic: &'a str,
    pub(super) form: KvEventsForm,
}

impl Answering<'_> {
    /// Answers requests for batches from a number on.
    ///
    /// # Errors
    /// When the connection ends, or the peer breaks the protocol.
    pub(super) async fn serve(self, stream: TcpStream) -> io::Result<()> {
        let (mut reader, mut writer) =
            greet(stream, "ROUTER", &["REQ", "DEALER", "ROUTER"]).await?;
        loop {
            match reader.receive().await? {
                Received::Ping(context) => writer.pong(&context).await?,
                Received::Message(frames) => match &*frames {
                    [empty, from] if empty.is_empty() && from.len() == END.len() => {
                        let from = from.iter().fold(0, |all, byte| all << 8 | u64::from(*byte));
                        self.answer(&mut writer, from).await?;
                    }
                    _ => tracing::warn!("a request for KV events has no number of 8 bytes"),
                },
            }
        }
    }

    async fn answer(self, writer: &mut Writer, from: u64) -> io::Result<()> {
        let mut next = self.ring.start(from).await;
        let end = self.ring.end();
        while let Some(batch) = self.ring.next(next).filter(|batch| batch.number < end) {
            let number = batch.number.to_be_bytes();
            self.send(writer, self.topic, [&number, &batch.payload]).await?;
            next = batch.number + 1;
        }
        self.send(writer, "", [&END, &[]]).await
    }

    async fn send(
        self,
        writer: &mut Writer,
        topic: &str,
        [number, payload]: [&[u8]; 2],
    ) -> io::Result<()> {
        match self.form {
            KvEventsForm::Map => writer.send(&[&[], topic.as_bytes(), number, payload]).await,
            KvEventsForm::Array => writer.send(&[&[], number, payload]).await,
        }
    }
}
