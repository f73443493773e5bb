//! Models without a tokenizer.

use super::super::*;

fn tokenizer() -> Tokenizer {
    let tokens = (0..12).map(|id| format!(" {id}")).collect();
    Tokenizer::new(Vocabulary { model: "none".into(), tokens, ..Vocabulary::default() }).unwrap()
}

#[test]
fn a_text_is_its_ids() {
    let tokenizer = tokenizer();
    assert_eq!(tokenizer.encode(" 3\n11  0", Special::Parse, true), [3, 11, 0]);
    assert_eq!(tokenizer.decode(&[3, 11, 0]), "3 11 0");
    let mut answer = tokenizer.detokenizer(&[3]);
    assert_eq!([answer.push(11), answer.push(0)].concat(), " 11 0");
    assert_eq!(tokenizer.tokens_at_least("3 11 0"), 3);
    assert_eq!(tokenizer.token_bytes(11).unwrap(), b" 11".as_slice());
}

#[test]
fn other_texts_are_refused_by_their_first_word() {
    let tokenizer = tokenizer();
    tokenizer.check("1 2 11").expect("ids");
    for (text, wrong) in [("1 12", "'12'"), ("hello 5", "'hello'"), ("-1", "'-1'")] {
        let error = tokenizer.check(text).unwrap_err().to_string();
        assert!(error.contains(wrong) && error.contains("0 to 11"), "{error}");
    }
}
