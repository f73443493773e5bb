//! The table of word rules. Some rows differ only in defaults, where models have the same patterns.

use super::patterns::{
    ASCII_DIGITS, BAILING, BLOOM, CJK, DECIMAL_THOUSANDS, DEEPSEEK_CJK, DEEPSEEK_LATIN,
    DEEPSEEK_PUNCTUATION, DEEPSEEK3, DIGIT, DIGITS, EAST_ASIAN, EXAONE_MOE, GPT2, GPT4O, JAIS2,
    KIMI_K2, LINE_ENDS, LINE_FEEDS, LLAMA3, MINICPM5, PLAIN_THOUSANDS, QWEN2, QWEN35, SEED_CODER,
    SPACED_PIECES, SPARK, TEKKEN, THOUSANDS, THREE_DIGITS, UFAKZEKA, UNSPACED, YOUTU, exact,
};
use super::{Begin, Spelling, Whole, WordRules};

/// Defaults of the rows.
const PLAIN: WordRules = WordRules {
    names: &[],
    steps: &[],
    spelling: Spelling::Bytes,
    whole: Whole::Never,
    begin: Begin::Off,
    has_bos: true,
};

/// Every row.
pub(super) const ALL: &[WordRules] = &[
    WordRules {
        names: &["default"],
        steps: &[exact(r"[\p{P}\$\+<=>\^~\|]+"), GPT2, DIGITS, ASCII_DIGITS],
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
        steps: &[LLAMA3],
        whole: Whole::Always,
        begin: Begin::On,
        ..PLAIN
    },
    WordRules { names: &["dbrx", "smaug-bpe"], steps: &[LLAMA3], ..PLAIN },
    WordRules { names: &["chatglm-bpe"], steps: &[LLAMA3], has_bos: false, ..PLAIN },
    WordRules {
        names: &["glm4", "glm5"],
        steps: &[LLAMA3],
        whole: Whole::Always,
        has_bos: false,
        ..PLAIN
    },
    WordRules { names: &["jais-2"], steps: &[JAIS2], ..PLAIN },
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
        steps: &[QWEN2],
        ..PLAIN
    },
    WordRules { names: &["qwen35"], steps: &[QWEN35], ..PLAIN },
    WordRules { names: &["laguna"], steps: &[LINE_FEEDS, QWEN2], ..PLAIN },
    WordRules { names: &["ufakzeka"], steps: &[UFAKZEKA], ..PLAIN },
    WordRules { names: &["bailingmoe", "bailingmoe2", "llada-moe"], steps: &[BAILING], ..PLAIN },
    WordRules { names: &["seed-coder"], steps: &[SEED_CODER], ..PLAIN },
    WordRules { names: &["exaone-moe"], steps: &[EXAONE_MOE], ..PLAIN },
    WordRules {
        names: &["minicpm5"],
        steps: &[THREE_DIGITS, MINICPM5],
        whole: Whole::Always,
        ..PLAIN
    },
    WordRules {
        names: &["tekken"],
        steps: &[TEKKEN],
        whole: Whole::Always,
        begin: Begin::On,
        ..PLAIN
    },
    WordRules {
        names: &["gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2"],
        steps: &[GPT4O],
        ..PLAIN
    },
    WordRules {
        names: &["granite-embed-multi-97m"],
        steps: &[GPT4O],
        whole: Whole::Always,
        ..PLAIN
    },
    WordRules { names: &["tiny_aya", "cohere2moe"], steps: &[PLAIN_THOUSANDS, GPT4O], ..PLAIN },
    WordRules { names: &["kimi-k2"], steps: &[KIMI_K2], ..PLAIN },
    WordRules { names: &["youtu"], steps: &[EAST_ASIAN, YOUTU], whole: Whole::Always, ..PLAIN },
    WordRules {
        names: &["deepseek-llm"],
        steps: &[
            LINE_ENDS,
            DEEPSEEK_LATIN,
            DEEPSEEK_PUNCTUATION,
            exact(r"\s+$"),
            DEEPSEEK_CJK,
            DIGITS,
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
        steps: &[THREE_DIGITS, CJK, DEEPSEEK3],
        ..PLAIN
    },
    WordRules { names: &["spark2_5"], steps: &[THREE_DIGITS, CJK, SPARK, DIGIT], ..PLAIN },
    WordRules { names: &["afmoe"], steps: &[THOUSANDS, UNSPACED, DEEPSEEK3], ..PLAIN },
    WordRules { names: &["superbpe"], steps: &[DIGITS, DECIMAL_THOUSANDS], ..PLAIN },
    WordRules {
        names: &["falcon"],
        steps: &[exact(r"[\p{P}\$\+<=>\^~\|`]+"), GPT2, ASCII_DIGITS],
        ..PLAIN
    },
    WordRules { names: &["bloom", "poro-chat", "gpt3-finnish"], steps: &[BLOOM], ..PLAIN },
    WordRules { names: &["viking"], steps: &[BLOOM, DIGIT], ..PLAIN },
    WordRules {
        names: &["chameleon"],
        steps: &[
            exact("<sentinel:[0-9]+>"),
            exact("IMGIMG[A-I]{1,4}Z"),
            exact(r"[\t\n]|    |  "),
            DIGIT,
            exact(r"[\p{P}!-/:-@\[-`{-\x7E]"),
            GPT2,
        ],
        begin: Begin::On,
        ..PLAIN
    },
    WordRules {
        names: &["gemma4", "granite-embed-multi-311m"],
        steps: &[LINE_FEEDS],
        spelling: Spelling::Pieces,
        whole: Whole::LineFeeds,
        begin: Begin::Always,
        ..PLAIN
    },
    WordRules {
        names: &["mmbert"],
        steps: &[SPACED_PIECES],
        spelling: Spelling::PiecesAfterSpace,
        whole: Whole::LineFeeds,
        ..PLAIN
    },
    WordRules { names: &["sarvam-moe"], steps: &[LINE_FEEDS], spelling: Spelling::Pieces, ..PLAIN },
];
