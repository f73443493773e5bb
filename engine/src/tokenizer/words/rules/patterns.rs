//! The patterns of words, in syntax that Rust's expressions and those of the `tokenizers` library share once
//! [`portable`](super::portable) has replaced the numbers of characters.

use super::{Cut, Step};

/// A pattern alone.
pub(super) const fn exact(pattern: &'static str) -> Step {
    Step { pattern, cut: Cut::Words }
}

/// A pattern that also splits the white space it leaves.
const fn spaced(pattern: &'static str) -> Step {
    Step { pattern, cut: Cut::WordsAndSpaces }
}

/// Endings as in `it's`, in any case.
macro_rules! endings {
    () => {
        r"'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD]"
    };
}

/// Letters of a word, with one character before them.
macro_rules! letters {
    () => {
        r"[^\r\n\p{L}\p{N}]?\p{L}+"
    };
}

/// A run of line ends with the white space before it.
macro_rules! lines {
    () => {
        r"\s*[\r\n]+"
    };
}

/// Punctuation with a space before it and line ends behind it; then lines.
macro_rules! punctuation_and_lines {
    () => {
        concat!(r" ?[^\s\p{L}\p{N}]+[\r\n]*|", lines!())
    };
}

/// As [`punctuation_and_lines`], with slashes among the line ends.
macro_rules! punctuation_and_slashes {
    () => {
        concat!(r" ?[^\s\p{L}\p{N}]+[\r\n/]*|", lines!())
    };
}

/// Capitals, then small letters, with one character before them; letters without case are both. `$not` restricts
/// the letters, and `$end` may follow a word.
macro_rules! cased {
    ($not:expr, $end:expr) => {
        concat!(
            r"[^\r\n\p{L}\p{N}]?[[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]",
            $not,
            r"]*[[\p{Ll}\p{Lm}\p{Lo}\p{M}]",
            $not,
            "]+",
            $end,
            r"|[^\r\n\p{L}\p{N}]?[[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]",
            $not,
            r"]+[[\p{Ll}\p{Lm}\p{Lo}\p{M}]",
            $not,
            "]*",
            $end,
        )
    };
}

/// An ending that may be there.
macro_rules! ending {
    () => {
        concat!("(?:", endings!(), ")?")
    };
}

/// Characters of the script Han, as ranges of a class.
macro_rules! han {
    () => {
        concat!(
            r"\u{2E80}-\u{2E99}\u{2E9B}-\u{2EF3}\u{2F00}-\u{2FD5}\u{3005}\u{3007}\u{3021}-\u{3029}",
            r"\u{3038}-\u{303B}\u{3400}-\u{4DBF}\u{4E00}-\u{9FFF}\u{F900}-\u{FA6D}\u{FA70}-\u{FAD9}",
            r"\u{16FE2}-\u{16FE3}\u{16FF0}-\u{16FF1}\u{20000}-\u{2A6DF}\u{2A700}-\u{2B739}",
            r"\u{2B740}-\u{2B81D}\u{2B820}-\u{2CEA1}\u{2CEB0}-\u{2EBE0}\u{2EBF0}-\u{2EE5D}",
            r"\u{2F800}-\u{2FA1D}\u{30000}-\u{3134A}\u{31350}-\u{323AF}",
        )
    };
}

/// An ASCII punctuation character with ASCII letters behind it, or letters and marks with one character before them.
macro_rules! marked_words {
    () => {
        concat!(
            r##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|"##,
            r"[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+",
        )
    };
}

/// Parts of the pattern of Llama 3, apart from white space.
macro_rules! llama3 {
    ($digits:expr) => {
        concat!(endings!(), "|", letters!(), "|", $digits, "|", punctuation_and_lines!())
    };
}

pub(super) const DIGIT: Step = exact(r"\p{N}");
pub(super) const DIGITS: Step = exact(r"\p{N}+");
pub(super) const THREE_DIGITS: Step = exact(r"\p{N}{1,3}");
/// Three digits of ASCII.
pub(super) const ASCII_DIGITS: Step = exact("[0-9][0-9][0-9]");
/// Numbers.
pub(super) const THOUSANDS: Step = Step { pattern: r"\p{N}+", cut: Cut::Thousands };
/// Decimal digits.
pub(super) const DECIMAL_THOUSANDS: Step = Step { pattern: r"\d+", cut: Cut::Thousands };
/// Decimal digits without letters behind them.
pub(super) const PLAIN_THOUSANDS: Step = Step { pattern: r"\d+\b", cut: Cut::Thousands };
pub(super) const GPT2: Step =
    spaced(r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+");
pub(super) const LLAMA3: Step = spaced(llama3!(r"\p{N}{1,3}"));
pub(super) const JAIS2: Step =
    Step { pattern: llama3!(r"\p{N}{1,3}"), cut: Cut::WordsAndSpacesByPowers };
pub(super) const QWEN2: Step = spaced(llama3!(r"\p{N}"));
pub(super) const MINICPM5: Step = spaced(llama3!(r"\p{N}+"));
pub(super) const QWEN35: Step = spaced(concat!(
    endings!(),
    r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|",
    lines!(),
));
pub(super) const UFAKZEKA: Step = spaced(concat!(letters!(), r"|\p{N}|", punctuation_and_lines!()));
pub(super) const BAILING: Step =
    spaced(concat!(endings!(), "|", letters!(), r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]"));
pub(super) const SEED_CODER: Step =
    spaced(concat!(endings!(), "|", letters!(), r"|\p{N}| ?[^\s\p{L}\p{N}\r\n]+|", lines!()));
pub(super) const EXAONE_MOE: Step = spaced(concat!(
    endings!(),
    r"|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]",
));
pub(super) const TEKKEN: Step =
    spaced(concat!(cased!("", ""), r"|\p{N}|", punctuation_and_slashes!()));
pub(super) const GPT4O: Step =
    spaced(concat!(cased!("", ending!()), r"|\p{N}{1,3}|", punctuation_and_slashes!()));
pub(super) const YOUTU: Step =
    spaced(concat!(cased!("", ending!()), r"|\p{N}|", punctuation_and_slashes!()));
pub(super) const KIMI_K2: Step = spaced(concat!(
    "[",
    han!(),
    "]+|",
    cased!(concat!("&&[^", han!(), "]"), ending!()),
    r"|\p{N}{1,3}|",
    punctuation_and_lines!(),
));
pub(super) const DEEPSEEK3: Step =
    spaced(concat!(marked_words!(), r"| ?[\p{P}\p{S}]+[\r\n]*|", lines!()));
pub(super) const SPARK: Step = spaced(concat!(marked_words!(), r"| ?[\p{P}\p{S}]+|[\r\n]"));
pub(super) const CJK: Step = exact(r"[\u{4E00}-\u{9FA5}\u{3040}-\u{30FF}]+");
/// Hangul, full-width punctuation, Bopomofo, and Han with kana, each apart from the others.
pub(super) const EAST_ASIAN: Step = exact(concat!(
    r"[\u{AC00}-\u{D7A3}\u{3131}-\u{318E}]+|[\u{FF01}\u{2026}\u{201C}\u{201D}\u{2018}\u{2019}\u{2014}",
    r"\u{FF1A}\u{FF1B}\u{FF0C}\u{3001}-\u{303F}\u{FE30}-\u{FE4F}]+|[\u{3105}-\u{312F}]+|",
    r"[\u{4E00}-\u{9FA5}\u{3040}-\u{30FF}]+",
));
/// Scripts without spaces between words.
pub(super) const UNSPACED: Step = exact(concat!(
    r"[\u{4E00}-\u{9FFF}\u{3400}-\u{4DBF}\u{F900}-\u{FAFF}\u{3040}-\u{30FF}\u{FF65}-\u{FF9F}",
    r"\u{2F00}-\u{2FDF}\u{E40}-\u{EFF}\u{1780}-\u{17FF}\u{1000}-\u{109F}\u{AA60}-\u{AA7F}",
    r"\u{A9E0}-\u{A9FF}\u{AC00}-\u{D7AF}\u{1100}-\u{11FF}]+",
));
pub(super) const DEEPSEEK_CJK: Step = exact(r"[[\u{800}-\u{9FA5}\u{AC00}-\u{D7FF}]&&[^\s]]+");
pub(super) const DEEPSEEK_LATIN: Step = exact(concat!(
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
pub(super) const DEEPSEEK_PUNCTUATION: Step =
    exact(r"\s?[!-/:-~\u{FF01}-\u{FF0F}\u{FF1A}-\u{FF5E}\u{2018}-\u{201F}\u{3001}-\u{3002}]+");
pub(super) const LINE_ENDS: Step = exact(r"[\r\n]");
pub(super) const LINE_FEEDS: Step = exact(r"[^\n]+|\n+");
/// Line feeds, and words that start with a space, which is spelled U+2581.
pub(super) const SPACED_PIECES: Step = exact(r"\n+|\u{2581}?[^\n\u{2581}]+|\u{2581}");
pub(super) const BLOOM: Step =
    exact(r" ?[^(\s|.,!?\u{2026}\u{3002}\u{FF0C}\u{3001}\u{964}\u{6D4}\u{60C})]+");
