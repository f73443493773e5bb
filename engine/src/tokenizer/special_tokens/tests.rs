//! The search compared with its definition, on vocabularies and texts in which tokens overlap.

use super::limits::TEXT_BYTES_MAX;
use super::search::STEPS;
use super::*;
use crate::tokenizer::token_table::Traits;
use crate::tokenizer::{TokenKind, Vocabulary};

/// Tokens with these texts, all user-defined; one that starts with `<` is a control token.
fn specials(texts: &[&str], change: impl Fn(&mut TokenTable, u32)) -> SpecialTokens {
    let kind = |text: &&str| {
        if text.starts_with('<') { TokenKind::Control } else { TokenKind::UserDefined }
    };
    let vocabulary = Vocabulary {
        tokens: texts.iter().map(|text| (*text).to_owned()).collect(),
        kinds: texts.iter().map(kind).collect(),
        ..Vocabulary::default()
    };
    let mut table = TokenTable::new(&vocabulary).unwrap();
    (0..table.len()).for_each(|id| change(&mut table, id));
    SpecialTokens::new(&table).unwrap()
}

/// The definition: one token after the other is cut out of what the earlier ones left.
fn by_definition<'t>(specials: &SpecialTokens, text: &'t str, plain: bool) -> Vec<Fragment<'t>> {
    let mut fragments = if text.is_empty() { vec![] } else { vec![Fragment::Text(text)] };
    for special in specials.specials.iter().filter(|special| !(plain && special.on_request)) {
        let mut cut = Vec::new();
        for fragment in fragments {
            let Fragment::Text(mut text) = fragment else {
                cut.push(fragment);
                continue;
            };
            while let Some(at) = text.find(&special.text) {
                let (mut before, mut after) = (&text[..at], &text[at + special.text.len()..]);
                if special.strip_left {
                    before = before.trim_end();
                }
                if special.strip_right {
                    after = after.trim_start();
                }
                cut.extend((!before.is_empty()).then_some(Fragment::Text(before)));
                cut.push(Fragment::Token(special.id));
                text = after;
            }
            cut.extend((!text.is_empty()).then_some(Fragment::Text(text)));
        }
        fragments = cut;
    }
    fragments
}

/// Every text of up to `length` of these characters.
fn all_texts(chars: &str, length: usize) -> Vec<String> {
    let mut texts = vec![String::new()];
    let mut last = texts.clone();
    for _ in 0..length {
        last = last.iter().flat_map(|t| chars.chars().map(move |c| format!("{t}{c}"))).collect();
        texts.extend(last.iter().cloned());
    }
    texts
}

#[test]
fn tokens_that_overlap_are_taken_in_the_defined_order() {
    let rows: [(&[&str], &str); 6] = [
        (&["a", "aa", "aaa", "aaaaa"], "ab"),
        (&["ab", "ba", "aba", "bb"], "ab"),
        (&["abc", "bcab", "c", "ca", "cc"], "abc"),
        (&["<", "<<", "a<", "<a<a"], "a<"),
        (&["a", " ", " a ", "a a"], "a "),
        (&["é", "aé", "éa"], "aé"),
    ];
    for (tokens, chars) in rows {
        for strips in [false, true] {
            let specials = specials(tokens, |table, id| {
                table.change(id, |traits| {
                    traits.strip_left = strips && id % 2 == 0;
                    traits.strip_right = strips && id % 3 == 0;
                });
            });
            for text in all_texts(chars, 8) {
                for (control, plain) in [(Control::Everywhere, false), (Control::Nowhere, true)] {
                    let found = specials.partition(&text, control);
                    let defined = by_definition(&specials, &text, plain);
                    assert_eq!(found, defined, "{tokens:?} in {text:?}, strips {strips}");
                }
            }
        }
    }
}

#[test]
fn control_tokens_do_not_contain_foreign_positions() {
    let specials = specials(&["<a>", "<|b|>", "c", "<\u{ff5c}d\u{ff5c}>", "<"], |table, id| {
        if table.text(id).starts_with("<|") {
            table.change(id, |traits| {
                *traits = crate::tokenizer::token_table::Traits::user_defined()
            });
        }
    });
    let text = "<a>c<|b|><a>";
    let ids = |control| {
        let fragments = specials.partition(text, control);
        let id = |fragment: Fragment<'_>| match fragment {
            Fragment::Token(id) => Some(id),
            Fragment::Text(_) => None,
        };
        fragments.into_iter().filter_map(id).collect::<Vec<_>>()
    };
    assert_eq!(ids(Control::Everywhere), [0, 2, 1, 0]);
    assert_eq!(ids(Control::Without(&[])), [0, 2, 1, 0]);
    assert_eq!(ids(Control::Without(&[0, 3])), [2, 1, 0]);
    assert_eq!(ids(Control::Without(&[1, 5, 11])), [4, 2, 4, 4]);
    assert_eq!(ids(Control::Nowhere), [2, 1]);
}

/// The ids that count by the definition of [`Control::Without`]; no token strips.
fn without_by_definition(specials: &SpecialTokens, text: &str, foreign: &[usize]) -> Vec<u32> {
    let mut taken: Vec<(usize, usize, u32)> = Vec::new();
    for special in &specials.specials {
        for (start, _) in text.char_indices() {
            let end = start + special.text.len();
            let counts = !special.controls
                || !special.text.trim().is_empty()
                    && !foreign.iter().any(|at| (start..end).contains(at));
            let is_free = taken.iter().all(|(from, to, _)| end <= *from || start >= *to);
            if text[start..].starts_with(&special.text) && counts && is_free {
                taken.push((start, end, special.id));
            }
        }
    }
    taken.sort_unstable();
    taken.into_iter().map(|(_, _, id)| id).collect()
}

#[test]
fn control_tokens_start_and_count_where_their_definitions_say() {
    let rows: [(&[&str], &str); 3] = [
        (&["<", "<<", "a<", "<a<a", "a", "aa<a"], "a<"),
        (&["<a>", "a>", "<a", "<a>a", ">"], "<a>"),
        (&["< ", " ", "  ", "<", " <a"], "< a"),
    ];
    for (tokens, chars) in rows {
        // White space as a control token too.
        let specials = specials(tokens, |table, id| {
            if table.text(id).trim().is_empty() {
                table.change(id, |traits| *traits = Traits { control: true, ..Traits::default() });
            }
        });
        for text in all_texts(chars, 6) {
            let starts_control = |at: &usize| {
                let mut controls = specials.specials.iter().filter(|special| special.controls);
                controls.any(|special| {
                    !special.text.trim().is_empty() && text[*at..].starts_with(&special.text)
                })
            };
            let starts: Vec<usize> = (0..text.len()).filter(starts_control).collect();
            assert_eq!(specials.control_positions(&text), starts, "{tokens:?} in {text:?}");
            for foreign in [&[][..], &[0], &[2], &[1, 3], &[0, 4, 5]] {
                let fragments = specials.partition(&text, Control::Without(foreign));
                let found: Vec<u32> = fragments
                    .into_iter()
                    .filter_map(|fragment| match fragment {
                        Fragment::Token(id) => Some(id),
                        Fragment::Text(_) => None,
                    })
                    .collect();
                let wanted = without_by_definition(&specials, &text, foreign);
                assert_eq!(found, wanted, "{tokens:?} in {text:?} without {foreign:?}");
            }
        }
    }
}

/// A search that cuts out one token after the other reads 64 times as many bytes for 8 times the text.
#[test]
fn distinct_tokens_in_a_text_take_linear_work() {
    let texts: Vec<String> = (0..40_000).map(|n| format!("<unused{n:05}>")).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let specials = specials(&texts, |_, _| {});
    let steps = |count: usize| {
        let text = texts[..count].concat();
        let before = STEPS.get();
        let fragments = specials.partition(&text, Control::Everywhere);
        assert_eq!(fragments.len(), count);
        STEPS.get() - before
    };
    let (short, long) = (steps(5_000), steps(40_000));
    assert!(short >= 5_000 * "<unused00000>".len(), "{short} steps read every byte");
    assert_eq!(long, 8 * short);
}

#[test]
fn special_tokens_of_absurd_length_are_refused() {
    let error = |texts: Vec<String>| {
        let vocabulary = Vocabulary {
            kinds: vec![TokenKind::Control; texts.len()],
            tokens: texts,
            ..Vocabulary::default()
        };
        let table = TokenTable::new(&vocabulary).unwrap();
        SpecialTokens::new(&table).err().map(|error| error.to_string())
    };
    assert_eq!(error(vec!["x".repeat(TEXT_BYTES_MAX)]), None);
    let long = error(vec!["x".repeat(TEXT_BYTES_MAX + 1)]).unwrap();
    assert!(long.contains("token 0 has 4097 bytes"), "{long}");
    let many = (0..1100).map(|n| format!("{n:04}").repeat(1000)).collect();
    let many = error(many).unwrap();
    assert!(many.contains("4400000 bytes"), "{many}");
}

#[test]
fn special_tokens_whose_search_would_be_large_are_refused() {
    let limited = |texts: Vec<String>| {
        limits::check((0..).zip(&texts).map(|(id, text)| (id, &**text)))
            .err()
            .map(|e| e.to_string())
    };
    // 8 000 visual tokens, 100 000 stand-ins of empty texts.
    assert_eq!(limited((0..8_000).map(|n| format!("<|visual token {n:06}|>")).collect()), None);
    assert_eq!(limited((0..100_000).map(|n| format!("[EMPTY_{n}]")).collect()), None);
    let different = (0..9_000).map(|n| format!("{n:04}").repeat(16)).collect();
    let different = limited(different).unwrap();
    assert!(different.contains("of 1 lengths have 5"), "{different}");
    // A list of up to 500 tokens for each of 250 000 states.
    let chain = (1..=500).map(|n| "a".repeat(n));
    let lists = chain.chain((0..500).map(|n| format!("{n:03}{}", "a".repeat(500)))).collect();
    let lists = limited(lists).unwrap();
    assert!(lists.contains("of 501 lengths have 25"), "{lists}");
}
