//! Decodes the parts of Perfetto's format that the tests need.

use std::collections::{BTreeMap, BTreeSet};

/// A packet of a trace.
#[derive(Debug)]
pub(crate) enum Packet {
    /// Descriptor of a track.
    Track {
        uuid: u64,
        parent: u64,
    },
    /// Event on a track; `id` is its argument of that name.
    Event {
        at: u64,
        track: u64,
        kind: u64,
        id: Option<u64>,
        flows: BTreeSet<u64>,
        ends_flows: BTreeSet<u64>,
    },
    Other,
}

/// A field's value.
#[derive(Debug)]
enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..).step_by(7) {
        let (byte, rest) = bytes.split_first().expect("a number ends");
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            break;
        }
    }
    value
}

fn fields(mut bytes: &[u8]) -> Vec<(u64, Value<'_>)> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let value = match key & 7 {
            0 => Value::Number(varint(&mut bytes)),
            1 => {
                let (number, rest) = bytes.split_at(8);
                bytes = rest;
                Value::Number(u64::from_le_bytes(number.try_into().unwrap()))
            }
            2 => {
                let length = varint(&mut bytes) as usize;
                let (inner, rest) = bytes.split_at(length);
                bytes = rest;
                Value::Bytes(inner)
            }
            wire => panic!("wire type {wire}"),
        };
        found.push((key >> 3, value));
    }
    found
}

/// Nested messages in a field.
fn inner(message: &[u8], field: u64) -> impl Iterator<Item = &[u8]> {
    fields(message).into_iter().filter_map(move |(number, value)| match value {
        Value::Bytes(bytes) if number == field => Some(bytes),
        _ => None,
    })
}

fn numbers(message: &[u8], field: u64) -> impl Iterator<Item = u64> {
    fields(message).into_iter().filter_map(move |(number, value)| match value {
        Value::Number(value) if number == field => Some(value),
        _ => None,
    })
}

fn number(message: &[u8], field: u64) -> Option<u64> {
    numbers(message, field).next()
}

/// Decodes the packets of a trace.
pub(crate) fn packets(trace: &[u8]) -> Vec<Packet> {
    let mut keys: BTreeMap<u64, String> = BTreeMap::new();
    let mut found = Vec::new();
    for packet in inner(trace, 1) {
        assert_eq!(number(packet, 10), Some(1), "every packet names its sequence");
        for texts in inner(packet, 12) {
            for entry in inner(texts, 3) {
                let text = inner(entry, 2).next().expect("a text");
                keys.insert(number(entry, 1).unwrap(), String::from_utf8(text.to_vec()).unwrap());
            }
        }
        let track = inner(packet, 60).next().map(|track| Packet::Track {
            uuid: number(track, 1).expect("a number"),
            parent: number(track, 5).unwrap_or(0),
        });
        let event = inner(packet, 11).next().map(|event| Packet::Event {
            at: number(packet, 8).expect("a time"),
            track: number(event, 11).expect("a track"),
            kind: number(event, 9).expect("a kind"),
            id: inner(event, 4)
                .find(|field| keys[&number(field, 1).unwrap()] == "id")
                .and_then(|field| number(field, 3)),
            flows: numbers(event, 47).collect(),
            ends_flows: numbers(event, 48).collect(),
        });
        found.push(track.or(event).unwrap_or(Packet::Other));
    }
    found
}
