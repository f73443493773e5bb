//! The named word rules, as data. The patterns are those of the models' own tokenizers, in the form
//! in which llama.cpp applies them.

use crate::tokenizer::error::TokenizerError;

/// One step of a chain.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    /// Pattern of a word. Text between words is kept as it is.
    pub(super) pattern: &'static str,
    /// Whether white space between words is split off too, except its last character if a word follows:
    /// `\s+(?!\S)|\s+`.
    pub(super) spaces: bool,
}

/// Rules with one or more values of `tokenizer.ggml.pre`.
#[derive(Clone, Copy, Debug)]
pub(in crate::tokenizer) struct WordRules {
    /// The values that select these rules.
    names: &'static [&'static str],
    /// Patterns, applied one after the other.
    pub(super) steps: &'static [Step],
    /// A word that is a token is taken whole, regardless of merges.
    pub(in crate::tokenizer) whole_words_first: bool,
    /// Whether text starts with the begin token when the file does not say.
    pub(in crate::tokenizer) add_bos: bool,
    /// Whether there is a begin token when the file states none.
    pub(in crate::tokenizer) has_bos: bool,
}

impl WordRules {
    /// The rules called `name`.
    pub(in crate::tokenizer) fn named(name: &str) -> Result<&'static Self, TokenizerError> {
        ALL.iter().find(|rules| rules.names.contains(&name)).ok_or_else(|| {
            TokenizerError::UnknownWordRules { pre: name.to_owned(), supported: Self::names() }
        })
    }

    /// All names, sorted and joined with commas.
    fn names() -> String {
        let mut names: Vec<&str> = ALL.iter().flat_map(|rules| rules.names).copied().collect();
        names.sort_unstable();
        names.join(", ")
    }
}

/// A pattern alone.
const fn exact(pattern: &'static str) -> Step {
    Step { pattern, spaces: false }
}

/// A pattern that also splits the white space it leaves.
const fn spaced(pattern: &'static str) -> Step {
    Step { pattern, spaces: true }
}

/// Defaults of the table's rows.
const PLAIN: WordRules =
    WordRules { names: &[], steps: &[], whole_words_first: false, add_bos: false, has_bos: true };

const DIGIT: Step = exact(r"\p{N}");
const THREE_DIGITS: Step = exact(r"\p{N}{1,3}");
const GPT2: Step = spaced(r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+");
const LLAMA3: &[Step] = &[spaced(concat!(
    r"'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD]|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|",
    r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+",
))];
const QWEN2_WORD: Step = spaced(concat!(
    r"'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD]|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|",
    r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+",
));
const QWEN35: Step = spaced(concat!(
    r"'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD]|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|",
    r"\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+",
));
const UFAKZEKA: Step =
    spaced(r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+");
const BAILING: Step = spaced(concat!(
    r"'(?:[sSdDmMtT]|[lL][lL]|[vV][eE]|[rR][eE])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|",
    r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]",
));
const SEED_CODER: Step = spaced(concat!(
    r"'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD]|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|",
    r" ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+",
));
const MINICPM5: Step = spaced(concat!(
    r"'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD]|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}+|",
    r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+",
));
const TEKKEN: Step = spaced(concat!(
    r"[^\r\n\p{L}\p{N}]?[\p{L}--a-z]*[\p{L}--A-Z]+|[^\r\n\p{L}\p{N}]?[\p{L}--a-z]+[\p{L}--A-Z]*|",
    r"\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+",
));
const GPT4O: Step = spaced(concat!(
    r"[^\r\n\p{L}\p{N}]?[\p{L}--a-z]*[\p{L}--A-Z]+",
    r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])?|",
    r"[^\r\n\p{L}\p{N}]?[\p{L}--a-z]+[\p{L}--A-Z]*",
    r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])?|",
    r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+",
));
const DEEPSEEK3_WORD: Step = spaced(concat!(
    r##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+|"##,
    r" ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+",
));
const CJK: Step = exact(r"[\u{4E00}-\u{9FA5}\u{3040}-\u{30FF}]+");
const DEEPSEEK_CJK: Step = exact(r"[[\u{800}-\u{9FA5}\u{AC00}-\u{D7FF}]--\s]+");
const DEEPSEEK_LATIN: Step = exact(concat!(
    r"\s?[A-Za-z\u{B5}\u{C0}-\u{D6}\u{D8}-\u{F6}\u{F8}-\u{1BA}\u{1BC}-\u{1BF}\u{1C4}-\u{293}",
    r"\u{295}-\u{2AF}\u{370}-\u{373}\u{376}\u{377}\u{37B}-\u{37D}\u{37F}\u{386}\u{388}-\u{38A}",
    r"\u{38C}\u{38E}-\u{3A1}\u{3A3}-\u{3F5}\u{3F7}-\u{481}\u{48A}-\u{52F}\u{531}-\u{556}",
    r"\u{10A0}-\u{10C5}\u{13A0}-\u{13F5}\u{13F8}-\u{13FD}\u{1C90}-\u{1CBA}\u{1CBD}-\u{1CBF}",
    r"\u{1D00}-\u{1D2B}\u{1D6B}-\u{1D77}\u{1D79}-\u{1D9A}\u{1E00}-\u{1F15}\u{1F18}-\u{1F1D}",
    r"\u{1F20}-\u{1F45}\u{1F48}-\u{1F4D}\u{1F50}-\u{1F57}\u{1F59}\u{1F5B}\u{1F5D}\u{1F5F}-",
    r"\u{1F7D}\u{1F80}-\u{1FB4}\u{1FB6}-\u{1FBC}\u{1FBE}\u{1FC2}-\u{1FC4}\u{1FC6}-\u{1FCC}",
    r"\u{1FD0}-\u{1FD3}\u{1FD6}-\u{1FDB}\u{1FE0}-\u{1FEC}\u{1FF2}-\u{1FF4}\u{1FF6}-\u{1FFC}",
    r"\u{2102}\u{2107}\u{210A}-\u{2113}\u{2115}\u{2119}-\u{211D}\u{2124}\u{2126}\u{2128}",
    r"\u{212A}-\u{212D}\u{212F}-\u{2134}\u{2139}\u{213C}-\u{213F}\u{2145}-\u{2149}\u{214E}",
    r"\u{2183}\u{2184}\u{2C00}-\u{2C7B}\u{2C7E}-\u{2CE4}\u{2CEB}-\u{2CEE}\u{2CF2}\u{2CF3}",
    r"\u{A640}-\u{A66D}\u{A680}-\u{A69B}\u{A722}-\u{A76F}\u{A771}-\u{A787}\u{A78B}-\u{A78E}",
    r"\u{AB70}-\u{ABBF}\u{FB00}-\u{FB06}\u{FB13}-\u{FB17}\u{FF21}-\u{FF3A}\u{FF41}-\u{FF5A}",
    r"\u{10400}-\u{1044F}\u{104B0}-\u{104D3}\u{104D8}-\u{104FB}\u{10C80}-\u{10CB2}\u{10CC0}-",
    r"\u{10CF2}\u{118A0}-\u{118DF}\u{1E900}-\u{1E943}]+",
));
const DEEPSEEK_PUNCTUATION: Step =
    exact(r"\s?[!-/:-~\u{FF01}-\u{FF0F}\u{FF1A}-\u{FF5E}\u{2018}-\u{201F}\u{3001}-\u{3002}]+");
const LINE_ENDS: Step = exact(r"[\r\n]");
const BLOOM: Step = exact(r" ?[^(\s|.,!?\u{2026}\u{3002}\u{FF0C}\u{3001}\u{964}\u{6D4}\u{60C})]+");

/// The table. Some rows differ only in defaults, where models have the same patterns.
const ALL: &[WordRules] = &[
    WordRules {
        names: &["default"],
        steps: &[exact(r"[\p{P}\$\+<=>\^~\|]+"), GPT2, exact(r"\p{N}+"), exact("[0-9][0-9][0-9]")],
        ..PLAIN
    },
    WordRules {
        names: &[
            "gpt-2",
            "phi-2",
            "jina-es",
            "jina-de",
            "gigachat",
            "jina-v2-es",
            "jina-v2-de",
            "a.x-4.0",
            "mellum",
            "modern-bert",
            "jina-v1-en",
            "jina-v2-code",
            "roberta-bpe",
            "exaone4",
            "mpt",
            "olmo",
            "jais",
            "trillion",
            "granite-docling",
        ],
        steps: &[GPT2],
        ..PLAIN
    },
    WordRules {
        names: &[
            "smollm",
            "starcoder",
            "refact",
            "command-r",
            "codeshell",
            "exaone",
            "minerva-7b",
            "mellum2",
        ],
        steps: &[DIGIT, GPT2],
        ..PLAIN
    },
    WordRules {
        names: &[
            "llama3",
            "llama-v3",
            "llama-bpe",
            "falcon3",
            "falcon-h1",
            "pixtral",
            "midm-2.0",
            "lfm2",
            "jina-v5-nano",
        ],
        steps: LLAMA3,
        whole_words_first: true,
        add_bos: true,
        ..PLAIN
    },
    WordRules { names: &["dbrx", "smaug-bpe"], steps: LLAMA3, ..PLAIN },
    WordRules { names: &["chatglm-bpe"], steps: LLAMA3, has_bos: false, ..PLAIN },
    WordRules {
        names: &["glm4", "glm5"],
        steps: LLAMA3,
        whole_words_first: true,
        has_bos: false,
        ..PLAIN
    },
    WordRules {
        names: &[
            "qwen2",
            "deepseek-r1-qwen",
            "kormo",
            "f2llmv2",
            "megrez",
            "stablelm2",
            "hunyuan",
            "solar-open",
            "grok-2",
        ],
        steps: &[QWEN2_WORD],
        ..PLAIN
    },
    WordRules { names: &["qwen35"], steps: &[QWEN35], ..PLAIN },
    WordRules { names: &["ufakzeka"], steps: &[UFAKZEKA], ..PLAIN },
    WordRules { names: &["bailingmoe", "bailingmoe2", "llada-moe"], steps: &[BAILING], ..PLAIN },
    WordRules { names: &["seed-coder"], steps: &[SEED_CODER], ..PLAIN },
    WordRules {
        names: &["minicpm5"],
        steps: &[THREE_DIGITS, MINICPM5],
        whole_words_first: true,
        ..PLAIN
    },
    WordRules {
        names: &["tekken"],
        steps: &[TEKKEN],
        whole_words_first: true,
        add_bos: true,
        ..PLAIN
    },
    WordRules {
        names: &["gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2"],
        steps: &[GPT4O],
        ..PLAIN
    },
    WordRules {
        names: &["deepseek-llm"],
        steps: &[
            LINE_ENDS,
            DEEPSEEK_LATIN,
            DEEPSEEK_PUNCTUATION,
            exact(r"\s+$"),
            DEEPSEEK_CJK,
            exact(r"\p{N}+"),
        ],
        ..PLAIN
    },
    WordRules {
        names: &["deepseek-coder"],
        steps: &[LINE_ENDS, exact(r"\s?\p{L}+"), exact(r"\s?\p{P}+"), DEEPSEEK_CJK, DIGIT],
        ..PLAIN
    },
    WordRules {
        names: &["deepseek-v3", "hunyuan-dense", "joyai-llm", "hy_v4"],
        steps: &[THREE_DIGITS, CJK, DEEPSEEK3_WORD],
        ..PLAIN
    },
    WordRules {
        names: &["falcon"],
        steps: &[exact(r"[\p{P}\$\+<=>\^~\|`]+"), GPT2, exact("[0-9][0-9][0-9]")],
        ..PLAIN
    },
    WordRules { names: &["bloom", "poro-chat", "gpt3-finnish"], steps: &[BLOOM], ..PLAIN },
    WordRules { names: &["viking"], steps: &[BLOOM, DIGIT], ..PLAIN },
];
