//! Text form of masks and rules.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use super::{AttentionRule, BlockList, Mask, MaskError};

impl fmt::Display for Mask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Mask::Causal => f.write_str("causal"),
            Mask::Full => f.write_str("full"),
            Mask::Around(most) => write!(f, "around={most}"),
            Mask::Window(window) => write!(f, "window={window}"),
            Mask::Dilated { count, stride } => write!(f, "dilated={count}x{stride}"),
            Mask::Blocks { blocks, window } => {
                write!(f, "block-sparse={}", blocks.block_len())?;
                for (i, (row, key)) in blocks.listed().iter().enumerate() {
                    write!(f, "{}{row}-{key}", if i == 0 { ':' } else { ',' })?;
                }
                window.map_or(Ok(()), |window| write!(f, ";window={window}"))
            }
        }
    }
}

impl FromStr for Mask {
    type Err = MaskError;

    fn from_str(text: &str) -> Result<Mask, MaskError> {
        let mask = match text.split_once('=') {
            None if text == "causal" => Some(Mask::Causal),
            None if text == "full" => Some(Mask::Full),
            Some(("around", most)) => most.parse().ok().map(Mask::Around),
            Some(("window", window)) => window.parse().ok().map(Mask::Window),
            Some(("dilated", sizes)) => {
                pair(sizes, 'x').map(|(count, stride)| Mask::Dilated { count, stride })
            }
            Some(("block-sparse", blocks)) => return block_sparse(text, blocks),
            _ => None,
        };
        let mask = mask.ok_or_else(|| wrong(text))?;
        mask.check()?;
        Ok(mask)
    }
}

fn block_sparse(text: &str, blocks: &str) -> Result<Mask, MaskError> {
    let (blocks, window) = match blocks.split_once(";window=") {
        None => (blocks, None),
        Some((blocks, window)) => (blocks, Some(window.parse().map_err(|_| wrong(text))?)),
    };
    let (len, pairs) = blocks.split_once(':').ok_or_else(|| wrong(text))?;
    let len = len.parse().map_err(|_| wrong(text))?;
    let pairs = pairs.split(',').map(|one| pair(one, '-'));
    let pairs = pairs.collect::<Option<Vec<_>>>().ok_or_else(|| wrong(text))?;
    let mask = Mask::Blocks { blocks: Arc::new(BlockList::new(len, pairs)?), window };
    mask.check()?;
    Ok(mask)
}

fn pair<T: FromStr>(text: &str, between: char) -> Option<(T, T)> {
    let (first, second) = text.split_once(between)?;
    Some((first.parse().ok()?, second.parse().ok()?))
}

fn wrong(text: &str) -> MaskError {
    MaskError::Text { text: text.to_owned() }
}

impl fmt::Display for AttentionRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.layers {
            None => {}
            Some(layers) if layers.start() == layers.end() => write!(f, "{}:", layers.start())?,
            Some(layers) => write!(f, "{}-{}:", layers.start(), layers.end())?,
        }
        self.mask.fmt(f)
    }
}

impl FromStr for AttentionRule {
    type Err = MaskError;

    fn from_str(text: &str) -> Result<AttentionRule, MaskError> {
        let prefixed =
            text.split_once(':').filter(|_| text.starts_with(|c: char| c.is_ascii_digit()));
        let Some((layers, mask)) = prefixed else { return Ok(text.parse::<Mask>()?.into()) };
        let single = || layers.parse().ok().map(|layer: usize| (layer, layer));
        let (first, last) = pair(layers, '-').or_else(single).ok_or_else(|| wrong(text))?;
        if first > last {
            return Err(wrong(text));
        }
        Ok(AttentionRule { layers: Some(first..=last), mask: mask.parse()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_and_rules_survive_their_text_form() {
        for text in [
            "causal",
            "around=64",
            "window=512",
            "dilated=8x3",
            "block-sparse=64:0-0,1-0,1-1",
            "block-sparse=64:0-0,1-1;window=7",
            "3:causal",
            "0-11:window=512",
            "2-2000:block-sparse=1:4-4",
        ] {
            let rule: AttentionRule = text.parse().expect(text);
            assert_eq!(rule.to_string(), text);
        }
        let unsorted: Mask = "block-sparse=4:1-1,0-0,1-1".parse().expect("a mask");
        assert_eq!(unsorted.to_string(), "block-sparse=4:0-0,1-1");
    }

    #[test]
    fn other_text_is_an_error_that_shows_the_forms() {
        for text in [
            "",
            "window",
            "window=",
            "window=-1",
            "window=5x",
            "dilated=5",
            "dilated=x5",
            "dilated=5x5x5",
            "block-sparse=5",
            "block-sparse=5:",
            "block-sparse=5:1",
            "block-sparse=5:1-1,",
            "block-sparse=5:1-5000000000",
            "block-sparse=5:1-1;window=",
            "5-3:causal",
            "5-:causal",
            "1-2",
            "banded=4",
        ] {
            let error = text.parse::<AttentionRule>().expect_err(text).to_string();
            assert!(error.contains("dilated=COUNTxSTRIDE"), "{text}: {error}");
        }
        for (text, what) in [
            ("window=0", "window"),
            ("dilated=0x2", "count"),
            ("1:dilated=2x0", "stride"),
            ("block-sparse=0:1-1", "block length"),
            ("block-sparse=2:1-1;window=0", "window"),
        ] {
            let error = text.parse::<AttentionRule>().expect_err(text);
            assert_eq!(error, MaskError::Zero { what });
        }
    }
}
