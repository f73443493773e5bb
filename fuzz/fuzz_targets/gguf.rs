//! Parses arbitrary bytes as a weight file and reads everything in a parsed file.
#![no_main]

#[path = "../../kernels/tests/integration/gguf_touch.rs"]
mod gguf_touch;

use lapwing_kernels::weights::parse;
use libfuzzer_sys::{Corpus, fuzz_target};

fuzz_target!(|bytes: &[u8]| -> Corpus {
    match parse(bytes) {
        Ok(gguf) => gguf_touch::touch(bytes, &gguf),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    Corpus::Keep
});
