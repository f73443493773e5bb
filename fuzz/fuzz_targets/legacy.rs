//! Converts arbitrary bytes as a file older than GGUF; a converted file must be a good GGUF file.
#![no_main]

#[path = "../../kernels/tests/integration/gguf_touch.rs"]
mod gguf_touch;

use lapwing_kernels::weights::legacy::{LegacyError, LegacyFile, LegacyOptions};
use lapwing_kernels::weights::parse;
use libfuzzer_sys::{Corpus, fuzz_target};

fn convert(bytes: &[u8]) -> Result<Vec<u8>, LegacyError> {
    let file = LegacyFile::parse(bytes.to_vec())?;
    let mut out = Vec::new();
    let writer = file.to_gguf(&LegacyOptions::default())?;
    writer.write_with(&mut out, |at, out| file.write_tensor(at, out))?;
    Ok(out)
}

fuzz_target!(|bytes: &[u8]| -> Corpus {
    match convert(bytes) {
        Ok(file) => gguf_touch::touch(&file, &parse(&file).expect("a good file")),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    Corpus::Keep
});
