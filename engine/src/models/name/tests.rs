use super::*;

#[test]
fn hub_name_survives_a_round_trip() {
    for text in [
        "hf:o/r/f.gguf",
        "hf:o/r/sub/f.GGUF@refs/pr/1",
        "hf:Qwen/Qwen3-0.6B-GGUF/a b.gguf@v1.0",
        "hf:Qwen/Qwen3-0.6B-GGUF",
        "hf:o/r:Q8_0",
        "hf:o/r:q4_k_m@refs/pr/1",
        "hf:o/r@main",
    ] {
        let name: ModelName = text.parse().unwrap();
        assert_eq!(name.to_string(), text);
    }
}

#[test]
fn a_hub_name_that_leaves_its_folder_is_rejected() {
    for text in [
        "hf:",
        "hf:o",
        "hf:o/",
        "hf:o/..",
        "hf:o/r:",
        "hf:o/r:Q8/0",
        "hf:o/r:Q8 0",
        "hf:o/r@",
        "hf:o/r/",
        "hf:../r/f.gguf",
        "hf:o/../f.gguf",
        "hf:o/r/../f.gguf",
        "hf:o/r//f.gguf",
        "hf:o/r/a\\f.gguf",
        "hf:o/r/f.bin",
        "hf:o/r/f.gguf@",
        "hf:o/r/f.gguf@../x",
        "hf:o o/r/f.gguf",
    ] {
        assert!(matches!(text.parse::<ModelName>(), Err(FetchError::BadName { .. })), "{text}");
    }
}

#[test]
fn unknown_name_lists_what_exists_and_suggests_the_nearest() {
    let error = "smolm2-135m-instruct".parse::<ModelName>().unwrap_err();
    let FetchError::UnknownModel { nearest, known, .. } = &error else { panic!("{error}") };
    assert_eq!(nearest.as_deref(), Some("smollm2-135m-instruct"));
    assert!(known.iter().any(|name| name == "gemma3-270m"));
    assert!(error.to_string().contains("did you mean \"smollm2-135m-instruct\"?"), "{error}");

    let error = "zzzzzzzzzzzzzzzz".parse::<ModelName>().unwrap_err();
    assert!(matches!(error, FetchError::UnknownModel { nearest: None, .. }), "{error}");
}

#[test]
fn alias_and_case_lead_to_the_same_model() {
    let by_alias: ModelName = "SmolLM2".parse().unwrap();
    assert_eq!(by_alias, ModelName::default_model());
    assert_eq!(by_alias.to_string(), "smollm2-135m-instruct");
}
