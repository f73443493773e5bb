//! The PUB socket: the connection of a subscriber.

use std::io;

use tokio::net::TcpStream;
use tokio::sync::mpsc;

use super::ring::Ring;
use super::zmtp::{Reader, Received, Writer, greet};

/// Most subscriptions of a connection.
const SUBSCRIPTIONS_MAX: usize = 256;

/// What a subscriber asks for.
#[derive(Debug)]
enum Asked {
    Subscribe(Vec<u8>),
    Cancel(Vec<u8>),
    Pong(Vec<u8>),
}

/// Sends batches to a subscriber, those that are published after its subscription, at its pace. It misses those that it
/// is too slow for.
///
/// # Errors
/// When the connection ends, or the peer breaks the protocol.
pub(super) async fn serve(stream: TcpStream, ring: &Ring, topic: &str) -> io::Result<()> {
    let (reader, writer) = greet(stream, "PUB", &["SUB", "XSUB"]).await?;
    let (asked, asks) = mpsc::channel(1);
    tokio::select! {
        ended = listen(reader, asked) => ended,
        ended = Sending { ring, topic, topics: Vec::new(), next: None }.run(writer, asks) => ended,
    }
}

async fn listen(mut reader: Reader, asked: mpsc::Sender<Asked>) -> io::Result<()> {
    loop {
        let ask = match reader.receive().await? {
            Received::Ping(context) => Asked::Pong(context),
            Received::Message(frames) => match frames.first().and_then(|frame| frame.split_first())
            {
                Some((1, topic)) => Asked::Subscribe(topic.to_vec()),
                Some((0, topic)) => Asked::Cancel(topic.to_vec()),
                _ => continue,
            },
        };
        if asked.send(ask).await.is_err() {
            return Ok(());
        }
    }
}

struct Sending<'a> {
    ring: &'a Ring,
    topic: &'a str,
    topics: Vec<Vec<u8>>,
    /// Number of the next batch, if the subscriber wants any.
    next: Option<u64>,
}

impl Sending<'_> {
    async fn run(mut self, mut writer: Writer, mut asks: mpsc::Receiver<Asked>) -> io::Result<()> {
        let mut watch = self.ring.watch();
        loop {
            tokio::select! {
                biased;
                ask = asks.recv() => match ask {
                    Some(Asked::Pong(context)) => writer.pong(&context).await?,
                    Some(ask) => self.ask(ask)?,
                    None => return Ok(()),
                },
                changed = watch.changed() => if changed.is_err() { return Ok(()) },
            }
            while let Some(batch) = self.next.and_then(|next| self.ring.next(next)) {
                let number = batch.number.to_be_bytes();
                writer.send(&[self.topic.as_bytes(), &number, &batch.payload]).await?;
                self.next = Some(batch.number + 1);
                if !asks.is_empty() {
                    watch.mark_changed();
                    break;
                }
            }
        }
    }

    fn ask(&mut self, ask: Asked) -> io::Result<()> {
        match ask {
            Asked::Subscribe(topic) if self.topics.len() < SUBSCRIPTIONS_MAX => {
                self.topics.push(topic);
            }
            Asked::Subscribe(_) => return Err(io::Error::other("too many subscriptions")),
            Asked::Cancel(topic) => {
                let known = self.topics.iter().position(|known| *known == topic);
                known.iter().for_each(|at| drop(self.topics.swap_remove(*at)));
            }
            Asked::Pong(_) => {}
        }
        let is_wanted = self.topics.iter().any(|it| self.topic.as_bytes().starts_with(it));
        self.next = is_wanted.then(|| self.next.unwrap_or_else(|| self.ring.end()));
        Ok(())
    }
}
