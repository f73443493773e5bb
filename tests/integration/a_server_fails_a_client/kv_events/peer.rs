//! A peer of ZeroMQ, and MessagePack, as far as KV events need them.

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

/// The mark at the end of what is repeated.
pub(super) const END: u64 = u64::MAX;

/// A peer of a socket of the server.
pub(super) struct Peer {
    pub(super) stream: BufReader<TcpStream>,
}

impl Peer {
    pub(super) async fn connect(address: &str, kind: &str) -> Peer {
        let address = address.strip_prefix("tcp://").expect("TCP");
        let stream = TcpStream::connect(address).await.expect("a connection");
        let mut peer = Peer { stream: BufReader::new(stream) };
        let mut greeting = [0; 64];
        (greeting[0], greeting[9], greeting[10]) = (0xff, 0x7f, 3);
        greeting[12..16].copy_from_slice(b"NULL");
        peer.stream.write_all(&greeting).await.expect("a greeting");
        peer.stream.read_exact(&mut greeting).await.expect("a greeting");
        assert_eq!((greeting[0], greeting[10], &greeting[12..17]), (0xff, 3, &b"NULL\0"[..]));
        let ready =
            [b"\x05READY\x0bSocket-Type", &(kind.len() as u32).to_be_bytes()[..], kind.as_bytes()];
        peer.frame(4, &ready.concat()).await;
        let (flags, body) = peer.read().await;
        assert!(flags == 4 && body.starts_with(b"\x05READY"), "{flags} {body:?}");
        peer
    }

    pub(super) async fn subscribe(address: &str, topic: &str) -> Peer {
        let mut peer = Peer::connect(address, "SUB").await;
        peer.frame(0, &[b"\x01", topic.as_bytes()].concat()).await;
        // The server answers a ping after it has read the subscription.
        peer.frame(4, b"\x04PING\0\0here").await;
        assert_eq!(peer.read().await, (4, b"\x04PONGhere".to_vec()));
        peer
    }

    pub(super) async fn frame(&mut self, flags: u8, body: &[u8]) {
        let head = [flags, u8::try_from(body.len()).expect("a short frame")];
        self.stream.write_all(&[&head, body].concat()).await.expect("a frame is sent");
    }

    async fn read(&mut self) -> (u8, Vec<u8>) {
        let flags = self.stream.read_u8().await.expect("a frame");
        let length = match flags & 2 {
            0 => u64::from(self.stream.read_u8().await.expect("a length")),
            _ => self.stream.read_u64().await.expect("a length"),
        };
        let mut body = vec![0; length as usize];
        self.stream.read_exact(&mut body).await.expect("a body");
        (flags & !2, body)
    }

    pub(super) async fn message(&mut self) -> Vec<Vec<u8>> {
        let mut frames = Vec::new();
        loop {
            let (flags, body) = self.read().await;
            frames.push(body);
            if flags & 1 == 0 {
                return frames;
            }
        }
    }
}

/// Reads a value of MessagePack.
pub(super) fn unpack(bytes: &mut &[u8]) -> Value {
    let mut take = |count: usize| -> Vec<u8> {
        let (head, rest) = bytes.split_at(count);
        *bytes = rest;
        head.to_vec()
    };
    let number = |bytes: Vec<u8>| bytes.iter().fold(0u64, |all, byte| all << 8 | u64::from(*byte));
    let tag = take(1)[0];
    let length = match tag {
        0x80..0xa0 => u64::from(tag & 15),
        0xa0..0xc0 => u64::from(tag & 31),
        0xd9 => number(take(1)),
        0xda | 0xdc => number(take(2)),
        _ => 0,
    } as usize;
    match tag {
        0..0x80 => tag.into(),
        0x80..0x90 => {
            let pairs = (0..length).map(|_| (unpack(bytes), unpack(bytes)));
            pairs.map(|(key, value)| (key.as_str().expect("a name").to_owned(), value)).collect()
        }
        0x90..0xa0 | 0xdc => (0..length).map(|_| unpack(bytes)).collect(),
        0xa0..0xc0 | 0xd9 | 0xda => String::from_utf8(take(length)).expect("UTF-8").into(),
        0xc0 => Value::Null,
        0xcb => f64::from_bits(number(take(8))).into(),
        0xcc => number(take(1)).into(),
        0xcd => number(take(2)).into(),
        0xce => number(take(4)).into(),
        0xcf => number(take(8)).into(),
        _ => panic!("a tag that is not used: {tag:#x}"),
    }
}
