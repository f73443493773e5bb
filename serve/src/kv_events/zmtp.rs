//! The wire protocol of ZeroMQ, ZMTP 3.0 (<https://rfc.zeromq.org/spec/23/>), without security.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader, BufWriter};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::timeout;

/// Time in which a peer must have introduced itself.
const GREETING_TIME: Duration = Duration::from_secs(10);
/// Bytes of a greeting.
const GREETING: usize = 64;
/// Most bytes of a frame of a peer, and most frames of a message.
const FRAME_MAX: u64 = 8 << 10;
const FRAMES_MAX: usize = 8;
/// Bits of a frame's first byte.
const MORE: u8 = 1;
const LONG: u8 = 2;
const COMMAND: u8 = 4;

/// What a peer sends.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Received {
    /// The frames of a message.
    Message(Vec<Vec<u8>>),
    /// It wants to hear this again.
    Ping(Vec<u8>),
}

/// What a peer sends.
#[derive(Debug)]
pub(super) struct Reader {
    read: BufReader<OwnedReadHalf>,
}

/// What is sent to a peer.
#[derive(Debug)]
pub(super) struct Writer {
    write: BufWriter<OwnedWriteHalf>,
}

struct Frame {
    flags: u8,
    body: Vec<u8>,
}

fn wrong(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// Introduces a socket of type `kind` to a peer, which must have one of the types `peers`.
///
/// # Errors
/// When the connection ends, or the peer is another one or silent.
pub(super) async fn greet(
    stream: TcpStream,
    kind: &str,
    peers: &[&str],
) -> io::Result<(Reader, Writer)> {
    let _ = stream.set_nodelay(true);
    let (read, write) = stream.into_split();
    let mut reader = Reader { read: BufReader::new(read) };
    let mut writer = Writer { write: BufWriter::new(write) };
    let introduced = async {
        writer.greeting().await?;
        reader.greeting().await?;
        writer.ready(kind).await?;
        let peer = reader.ready().await?;
        match peers.iter().any(|name| name.as_bytes() == peer) {
            true => Ok(()),
            false => Err(wrong("the peer is a socket of another type")),
        }
    };
    timeout(GREETING_TIME, introduced).await.map_err(|_| wrong("the peer is silent"))??;
    Ok((reader, writer))
}

impl Reader {
    /// The next message.
    ///
    /// # Errors
    /// When the connection has ended, or the peer breaks the protocol or its limits.
    pub(super) async fn receive(&mut self) -> io::Result<Received> {
        let mut frames = Vec::new();
        loop {
            let Frame { flags, body } = self.frame().await?;
            if flags & COMMAND != 0 {
                // The name, then a time of two bytes.
                if let Some(context) = body.strip_prefix(b"\x04PING").and_then(|it| it.get(2..)) {
                    return Ok(Received::Ping(context.to_vec()));
                }
                continue;
            }
            frames.push(body);
            if flags & MORE == 0 {
                return Ok(Received::Message(frames));
            }
            if frames.len() == FRAMES_MAX {
                return Err(wrong("a message of too many frames"));
            }
        }
    }

    async fn frame(&mut self) -> io::Result<Frame> {
        let flags = self.read.read_u8().await?;
        let length = match flags & LONG {
            0 => u64::from(self.read.read_u8().await?),
            _ => self.read.read_u64().await?,
        };
        if length > FRAME_MAX {
            return Err(wrong("a frame that is too long"));
        }
        let mut body = vec![0; length as usize];
        self.read.read_exact(&mut body).await?;
        Ok(Frame { flags, body })
    }

    async fn greeting(&mut self) -> io::Result<()> {
        let mut greeting = [0; GREETING];
        self.read.read_exact(&mut greeting).await?;
        let [0xff, ..] = greeting else { return Err(wrong("not ZMTP")) };
        if greeting[9] & 1 == 0 || greeting[10] < 3 {
            return Err(wrong("a version of ZMTP before 3"));
        }
        match greeting[12..32] == mechanism() {
            true => Ok(()),
            false => Err(wrong("a security mechanism")),
        }
    }

    /// The type of the peer's socket.
    async fn ready(&mut self) -> io::Result<Vec<u8>> {
        let Frame { flags, body } = self.frame().await?;
        let properties = body.strip_prefix(b"\x05READY").filter(|_| flags & COMMAND != 0);
        let mut rest = properties.ok_or_else(|| wrong("no READY"))?;
        while let Some((name, after)) = rest.split_first_chunk::<1>() {
            let (name, after) = split(after, usize::from(name[0]))?;
            let (length, after) = after.split_first_chunk().ok_or_else(|| wrong("no value"))?;
            let (value, after) = split(after, u32::from_be_bytes(*length) as usize)?;
            if name.eq_ignore_ascii_case(b"socket-type") {
                return Ok(value.to_vec());
            }
            rest = after;
        }
        Err(wrong("no type of socket"))
    }
}

impl Writer {
    /// Sends a message.
    ///
    /// # Errors
    /// When the connection has ended.
    pub(super) async fn send(&mut self, frames: &[&[u8]]) -> io::Result<()> {
        for (at, frame) in frames.iter().enumerate() {
            let more = if at + 1 < frames.len() { MORE } else { 0 };
            self.frame(more, frame).await?;
        }
        self.write.flush().await
    }

    /// Answers a [`Received::Ping`].
    ///
    /// # Errors
    /// When the connection has ended.
    pub(super) async fn pong(&mut self, context: &[u8]) -> io::Result<()> {
        self.frame(COMMAND, &[b"\x04PONG", context].concat()).await?;
        self.write.flush().await
    }

    async fn frame(&mut self, flags: u8, body: &[u8]) -> io::Result<()> {
        match u8::try_from(body.len()) {
            Ok(length) => self.write.write_all(&[flags, length]).await?,
            Err(_) => {
                self.write.write_u8(flags | LONG).await?;
                self.write.write_u64(body.len() as u64).await?;
            }
        }
        self.write.write_all(body).await
    }

    async fn greeting(&mut self) -> io::Result<()> {
        let mut greeting = [0; GREETING];
        (greeting[0], greeting[9], greeting[10]) = (0xff, 0x7f, 3);
        greeting[12..32].copy_from_slice(&mechanism());
        self.write.write_all(&greeting).await?;
        self.write.flush().await
    }

    async fn ready(&mut self, kind: &str) -> io::Result<()> {
        let mut body = b"\x05READY\x0bSocket-Type".to_vec();
        body.extend((kind.len() as u32).to_be_bytes());
        body.extend(kind.as_bytes());
        self.frame(COMMAND, &body).await?;
        self.write.flush().await
    }
}

/// The mechanism without security.
fn mechanism() -> [u8; 20] {
    let mut name = [0; 20];
    name[..4].copy_from_slice(b"NULL");
    name
}

fn split(bytes: &[u8], at: usize) -> io::Result<(&[u8], &[u8])> {
    bytes.split_at_checked(at).ok_or_else(|| wrong("a property that is cut off"))
}
