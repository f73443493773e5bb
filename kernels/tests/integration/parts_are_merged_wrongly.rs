//! Models older than GGUF in several parts become the same GGUF file as in one.

use std::path::Path;

use lapwing_kernels::weights::legacy::{LegacyError, LegacyFile, LegacyOptions};

const WIDTH: usize = 128;
const HEADS: usize = 4;
const VOCAB: usize = 40;
const LAYERS: usize = 2;

/// How a tensor is cut, from llama.cpp's reader of March 2023.
#[derive(Clone, Copy, PartialEq)]
enum Cut {
    None,
    Rows,
    Columns,
}

/// A format of matrices: number of the type, values and bytes of a block.
#[derive(Clone, Copy)]
struct Format {
    id: u32,
    block: usize,
    bytes: usize,
}

const F16: Format = Format { id: 1, block: 1, bytes: 2 };
const Q4_0: Format = Format { id: 2, block: 32, bytes: 20 };
const Q4_1: Format = Format { id: 3, block: 32, bytes: 24 };
const FORMATS: [Format; 3] = [F16, Q4_0, Q4_1];

/// A model of these formats: magic number, version if it has one, format of matrices, inner width.
#[derive(Clone, Copy)]
struct Model {
    magic: &'static [u8; 4],
    version: Option<u32>,
    format: Format,
    hidden: usize,
}

impl Model {
    /// Names, rows, columns and cuts of all tensors.
    fn tensors(&self) -> Vec<(String, usize, usize, Cut)> {
        let whole = [
            ("tok_embeddings", VOCAB, WIDTH, Cut::Columns),
            ("norm", 1, WIDTH, Cut::None),
            ("output", VOCAB, WIDTH, Cut::Rows),
        ];
        let layer = [
            ("attention.wq", WIDTH, WIDTH, Cut::Rows),
            ("attention.wk", WIDTH, WIDTH, Cut::Rows),
            ("attention.wv", WIDTH, WIDTH, Cut::Rows),
            ("attention.wo", WIDTH, WIDTH, Cut::Columns),
            ("feed_forward.w1", self.hidden, WIDTH, Cut::Rows),
            ("feed_forward.w2", WIDTH, self.hidden, Cut::Columns),
            ("feed_forward.w3", self.hidden, WIDTH, Cut::Rows),
            ("attention_norm", 1, WIDTH, Cut::None),
            ("ffn_norm", 1, WIDTH, Cut::None),
        ];
        let named = |(name, rows, cols, cut)| (format!("{name}.weight"), rows, cols, cut);
        let mut all: Vec<_> = whole.map(named).into();
        for n in 0..LAYERS {
            let of_layer =
                |(name, rows, cols, cut)| (format!("layers.{n}.{name}.weight"), rows, cols, cut);
            all.extend(layer.map(of_layer));
        }
        all
    }

    /// Header and vocabulary, which every part has.
    fn head(&self) -> Vec<u8> {
        let mut bytes = self.magic.to_vec();
        let params = [VOCAB, WIDTH, 32, HEADS, LAYERS, WIDTH / HEADS, self.format.id as usize];
        let numbers = self.version.into_iter().chain(params.map(|n| n as u32));
        bytes.extend(numbers.flat_map(u32::to_le_bytes));
        for id in 0..VOCAB {
            let text = format!("t{id}");
            bytes.extend((text.len() as u32).to_le_bytes());
            bytes.extend(text.bytes());
            if self.version.is_some() {
                bytes.extend((id as f32).to_le_bytes());
            }
        }
        bytes
    }

    /// One of `parts` parts.
    fn part(&self, part: usize, parts: usize) -> Vec<u8> {
        let mut bytes = self.head();
        for (number, (name, rows, cols, cut)) in self.tensors().into_iter().enumerate() {
            let vector = rows == 1;
            let format = if vector { Format { id: 0, block: 1, bytes: 4 } } else { self.format };
            let share = |n: usize, is_cut| {
                if is_cut { part * n / parts..(part + 1) * n / parts } else { 0..n }
            };
            let (rows_of, cols_of) =
                (share(rows, cut == Cut::Rows), share(cols, cut == Cut::Columns));
            let dims = [cols_of.len() as u32, rows_of.len() as u32];
            let dims = &dims[..if vector { 1 } else { 2 }];
            let numbers = [dims.len() as u32, name.len() as u32, format.id];
            bytes.extend(numbers.iter().chain(dims).flat_map(|n| n.to_le_bytes()));
            bytes.extend(name.bytes());
            for row in rows_of {
                for block in cols_of.start / format.block..cols_of.end / format.block {
                    bytes.extend(block_of(format, number * 7919 + row * 131 + block));
                }
            }
        }
        bytes
    }

    fn parts(&self, parts: usize) -> Vec<Vec<u8>> {
        (0..parts).map(|part| self.part(part, parts)).collect()
    }
}

/// The bytes of a block: scales that binary16 can hold, and values that depend on `seed`.
fn block_of(format: Format, seed: usize) -> Vec<u8> {
    let scales = if format.block == 1 { 0 } else { format.bytes - 16 };
    let scale = (seed % 1000) as f32 / 1024.0;
    let scales = scale.to_le_bytes().into_iter().cycle().take(scales);
    let mixed = (seed as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let values = (0..format.bytes).map(|i| (mixed >> (i % 8 * 8)) as u8 & 0x3f);
    scales.chain(values).take(format.bytes).collect()
}

fn convert(file: &LegacyFile) -> Result<Vec<u8>, LegacyError> {
    let mut out = Vec::new();
    let writer = file.to_gguf(&LegacyOptions::default())?;
    writer.write_with(&mut out, |at, out| file.write_tensor(at, out))?;
    Ok(out)
}

fn models() -> Vec<Model> {
    let versions: [(&[u8; 4], _); 2] = [(b"lmgg", None), (b"fmgg", Some(1))];
    let of = |(magic, version)| FORMATS.map(|format| Model { magic, version, format, hidden: 256 });
    versions.into_iter().flat_map(of).collect()
}

#[test]
fn parts_become_the_bytes_of_the_whole() {
    for model in models() {
        let whole = LegacyFile::parse(model.part(0, 1)).expect("a whole file");
        let wanted = convert(&whole).expect("a model");
        for parts in [2, 4] {
            let merged = LegacyFile::parse_parts(model.parts(parts)).expect("all parts");
            assert!(convert(&merged).expect("a model") == wanted, "{} in {parts}", model.format.id);
        }
    }
}

fn write(folder: &Path, parts: &[Vec<u8>]) {
    for (n, bytes) in parts.iter().enumerate() {
        let name = if n == 0 { "model.bin".to_owned() } else { format!("model.bin.{n}") };
        std::fs::write(folder.join(name), bytes).expect("written");
    }
}

#[test]
fn any_part_opens_all_of_them_and_a_missing_one_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let model = models()[1];
    write(folder.path(), &model.parts(4));
    let wanted = convert(&LegacyFile::parse(model.part(0, 1)).expect("a file")).expect("a model");
    for name in ["model.bin", "model.bin.1", "model.bin.3"] {
        let file = LegacyFile::open(&folder.path().join(name)).expect("all parts");
        assert!(convert(&file).expect("a model") == wanted, "{name}");
    }
    let open = || LegacyFile::open(&folder.path().join("model.bin.3")).expect_err("a part less");
    std::fs::remove_file(folder.path().join("model.bin.2")).expect("removed");
    let error = open().to_string();
    assert!(error.contains("part 3 of 4") && error.contains("model.bin.2;"), "{error}");
    std::fs::remove_file(folder.path().join("model.bin")).expect("removed");
    let error = open().to_string();
    assert!(error.contains("part 1 of 4") && error.contains("model.bin;"), "{error}");
}

#[test]
fn parts_that_do_not_belong_together_are_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let (ggml, ggmf) = (models()[1], models()[4]);
    let good = ggmf.parts(2);
    let narrow = Model { hidden: 128, ..ggmf };
    let token = |mut bytes: Vec<u8>| {
        let at = bytes.windows(3).position(|w| w == b"t17").expect("a token");
        bytes[at] = b'u';
        bytes
    };
    let renamed = |mut bytes: Vec<u8>| {
        let at = bytes.windows(8).rposition(|w| w == b"ffn_norm").expect("a tensor");
        bytes[at] = b'g';
        bytes
    };
    for (second, says) in [
        (ggml.part(1, 2), "GGML and"),
        (narrow.part(1, 2), "tensor 'layers.0.feed_forward.w1.weight' is [128, 64]"),
        (ggmf.part(0, 1), "tensor 'tok_embeddings.weight' is [128, 40]"),
        (token(good[1].clone()), "token 17"),
        (renamed(good[1].clone()), "tensor 'layers.1.ffn_norm.weight' is missing"),
        (good[1][..good[1].len() - 1].to_vec(), "at byte"),
    ] {
        write(folder.path(), &[good[0].clone(), second]);
        let error = LegacyFile::open(&folder.path().join("model.bin")).expect_err(says).to_string();
        assert!(error.contains("model.bin.1: ") && error.contains(says), "{says}: {error}");
    }
    for (parts, says) in [(1, "1 parts of a model that is cut in 2"), (3, "3 parts")] {
        let parts = good.iter().cycle().take(parts).cloned().collect();
        let error = LegacyFile::parse_parts(parts).expect_err(says).to_string();
        assert!(error.contains(says), "{error}");
    }
    assert!(LegacyFile::parse_parts(Vec::new()).is_err());
}

#[test]
fn a_block_that_a_cut_divides_is_an_error() {
    // 96 columns of w2 in two parts: 48 are no whole blocks of 32.
    let model = Model { hidden: 96, ..models()[1] };
    convert(&LegacyFile::parse(model.part(0, 1)).expect("a whole file")).expect("a model");
    let error = LegacyFile::parse_parts(model.parts(2)).expect_err("half a block").to_string();
    assert!(error.contains("feed_forward.w2") && error.contains("48"), "{error}");
}
