//! A tiny encoder as BERT: its weight file, and its hidden states computed naively in double precision.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use lapwing_kernels::formats::DType;
use lapwing_kernels::weights::{GgufWriter, MetaValue};

pub(crate) const WIDTH: usize = 24;
pub(crate) const CONTEXT: usize = 40;
pub(crate) const LAYERS: usize = 2;
const HEADS: usize = 3;
const INNER: usize = 52;
const EPS: f32 = 1e-5;

/// The token at the end of each part of a text.
const SEPARATOR: u32 = 3;

/// Texts of the tokens: U+2581 before those that begin a word.
const TOKENS: &str =
    "[PAD] [UNK] [CLS] [SEP] ▁a ▁small ▁large ▁boat ▁ship s ▁rice ▁of ▁bowl ▁, ▁red ▁blue";

/// Weights by tensor name, each with its rows and columns.
pub(crate) struct Encoder {
    pub(crate) tensors: BTreeMap<String, (usize, usize, Vec<f32>)>,
}

impl Encoder {
    pub(crate) fn new() -> Encoder {
        let vocab = TOKENS.split(' ').count();
        let mut encoder = Encoder { tensors: BTreeMap::new() };
        encoder.add("token_embd.weight", vocab, WIDTH, 1.0);
        encoder.add("position_embd.weight", CONTEXT, WIDTH, 0.5);
        encoder.add("token_types.weight", 2, WIDTH, 0.5);
        encoder.add_norm("token_embd_norm");
        for layer in 0..LAYERS {
            for (role, rows, cols) in [
                ("attn_q", WIDTH, WIDTH),
                ("attn_k", WIDTH, WIDTH),
                ("attn_v", WIDTH, WIDTH),
                ("attn_output", WIDTH, WIDTH),
                ("ffn_up", INNER, WIDTH),
                ("ffn_down", WIDTH, INNER),
            ] {
                encoder.add(&format!("blk.{layer}.{role}.weight"), rows, cols, 0.4);
                encoder.add(&format!("blk.{layer}.{role}.bias"), 1, rows, 0.2);
            }
            encoder.add_norm(&format!("blk.{layer}.attn_output_norm"));
            encoder.add_norm(&format!("blk.{layer}.layer_output_norm"));
        }
        encoder
    }

    /// The same encoder with the head of a reranker.
    pub(crate) fn ranking() -> Encoder {
        let mut encoder = Encoder::new();
        for (role, rows) in [("cls", WIDTH), ("cls.output", 1)] {
            encoder.add(&format!("{role}.weight"), rows, WIDTH, 0.7);
            encoder.add(&format!("{role}.bias"), 1, rows, 0.3);
        }
        encoder
    }

    /// The score of a pair of texts.
    pub(crate) fn score(&self, ids: &[u32]) -> f64 {
        let first = self.hidden(ids).swap_remove(0);
        let inner: Vec<f64> =
            self.linear("cls", &[first])[0].iter().map(|value| value.tanh()).collect();
        self.linear("cls.output", &[inner])[0][0]
    }

    fn add_norm(&mut self, name: &str) {
        self.add(&format!("{name}.weight"), 1, WIDTH, 1.0);
        self.add(&format!("{name}.bias"), 1, WIDTH, 0.3);
    }

    /// Random values within ±`scale`, which depend on the name only.
    fn add(&mut self, name: &str, rows: usize, cols: usize, scale: f32) {
        let mut state = name
            .bytes()
            .fold(1u64, |state: u64, byte| state.wrapping_mul(31).wrapping_add(u64::from(byte)));
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            ((state >> 40) as f32 / (1 << 23) as f32 - 1.0) * scale
        };
        let values = (0..rows * cols).map(|_| next()).collect();
        self.tensors.insert(name.to_owned(), (rows, cols, values));
    }

    /// Its weight file, which says that rows are causal or that they are not.
    pub(crate) fn file(&self, path: &Path, causal: bool) -> PathBuf {
        let tokens: Vec<String> = TOKENS.split(' ').map(str::to_owned).collect();
        let kinds: Vec<i32> =
            tokens.iter().map(|text| if text.starts_with('[') { 3 } else { 1 }).collect();
        let mut writer = GgufWriter::new();
        for (key, value) in [
            ("context_length", CONTEXT),
            ("embedding_length", WIDTH),
            ("feed_forward_length", INNER),
            ("block_count", LAYERS),
            ("attention.head_count", HEADS),
        ] {
            writer.meta(&format!("bert.{key}"), value as u32);
        }
        writer
            .meta("general.architecture", "bert")
            .meta("bert.attention.layer_norm_epsilon", MetaValue::F32(EPS))
            .meta("bert.attention.causal", causal)
            .meta("tokenizer.ggml.model", "bert")
            .meta("tokenizer.ggml.tokens", tokens)
            .meta("tokenizer.ggml.token_type", kinds);
        for (name, (rows, cols, values)) in &self.tensors {
            let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
            let shape = if *rows == 1 { vec![*cols] } else { vec![*cols, *rows] };
            writer.tensor(name, &shape, DType::F32, bytes);
        }
        let mut bytes = Vec::new();
        writer.write_to(&mut bytes).expect("a file");
        std::fs::write(path, bytes).expect("it is written");
        path.to_owned()
    }

    fn of(&self, name: &str) -> Vec<f64> {
        self.tensors[name].2.iter().map(|value| f64::from(*value)).collect()
    }

    fn linear(&self, name: &str, x: &[Vec<f64>]) -> Vec<Vec<f64>> {
        let (weight, bias) = (self.of(&format!("{name}.weight")), self.of(&format!("{name}.bias")));
        let dot = |row: &[f64], x: &[f64]| row.iter().zip(x).map(|(w, x)| w * x).sum::<f64>();
        let one = |x: &Vec<f64>| {
            let rows = weight.chunks(x.len()).zip(&bias);
            rows.map(|(row, bias)| dot(row, x) + bias).collect()
        };
        x.iter().map(one).collect()
    }

    fn norm(&self, name: &str, x: &[Vec<f64>]) -> Vec<Vec<f64>> {
        let (weight, bias) = (self.of(&format!("{name}.weight")), self.of(&format!("{name}.bias")));
        let one = |x: &Vec<f64>| {
            let mean = x.iter().sum::<f64>() / x.len() as f64;
            let variance = x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / x.len() as f64;
            let root = (variance + f64::from(EPS)).sqrt();
            let all = x.iter().zip(weight.iter().zip(&bias));
            all.map(|(x, (weight, bias))| (x - mean) / root * weight + bias).collect()
        };
        x.iter().map(one).collect()
    }

    /// Hidden states of each token.
    pub(crate) fn hidden(&self, ids: &[u32]) -> Vec<Vec<f64>> {
        let row = |name: &str, row: usize| self.of(name)[row * WIDTH..(row + 1) * WIDTH].to_vec();
        let embedded = ids.iter().enumerate().map(|(at, id)| {
            let is_later = ids[..at].contains(&SEPARATOR);
            let parts = [
                row("token_embd.weight", *id as usize),
                row("token_types.weight", usize::from(is_later)),
                row("position_embd.weight", at),
            ];
            (0..WIDTH).map(|i| parts.iter().map(|part| part[i]).sum()).collect()
        });
        let mut x = self.norm("token_embd_norm", &embedded.collect::<Vec<_>>());
        for layer in 0..LAYERS {
            let name = |role: &str| format!("blk.{layer}.{role}");
            let [q, k, v] = ["attn_q", "attn_k", "attn_v"].map(|role| self.linear(&name(role), &x));
            let mixed = self.linear(&name("attn_output"), &attention(&q, &k, &v));
            x = self.norm(&name("attn_output_norm"), &sum(&x, &mixed));
            let inner = self.linear(&name("ffn_up"), &x);
            let gelu = |x: &Vec<f64>| {
                x.iter().map(|x| lapwing_kernels::reference::gelu(*x)).collect::<Vec<_>>()
            };
            let inner: Vec<Vec<f64>> = inner.iter().map(gelu).collect();
            x = self.norm(
                &name("layer_output_norm"),
                &sum(&x, &self.linear(&name("ffn_down"), &inner)),
            );
        }
        x
    }
}

fn sum(a: &[Vec<f64>], b: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let rows = a.iter().zip(b);
    rows.map(|(a, b)| a.iter().zip(b).map(|(a, b)| a + b).collect()).collect()
}

/// Each row attends to all rows.
fn attention(q: &[Vec<f64>], k: &[Vec<f64>], v: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let dim = WIDTH / HEADS;
    let one = |q: &Vec<f64>| {
        let mut out = vec![0.0; WIDTH];
        for head in 0..HEADS {
            let part = head * dim..(head + 1) * dim;
            let score = |k: &Vec<f64>| {
                let pairs = q[part.clone()].iter().zip(&k[part.clone()]);
                (pairs.map(|(q, k)| q * k).sum::<f64>() / (dim as f64).sqrt()).exp()
            };
            let weights: Vec<f64> = k.iter().map(score).collect();
            let total: f64 = weights.iter().sum();
            for (weight, v) in weights.iter().zip(v) {
                part.clone().for_each(|i| out[i] += weight / total * v[i]);
            }
        }
        out
    };
    q.iter().map(one).collect()
}
