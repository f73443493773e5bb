use std::path::Path;

use lapwing_kernels::requant::Requant;
use lapwing_kernels::weights::WeightFile;

use super::*;
use crate::devices::DeviceSpec;
use crate::draft::DraftChoice;
use crate::engine::Engine;

#[test]
fn plans_depend_on_a_draft_model_that_takes_memory_of_a_device() {
    let subject = |draft: DraftChoice| {
        let tiny = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/reference/tiny");
        let devices = DeviceSpec::list("cpu+gpu=opencl").expect("devices");
        let builder = Engine::builder().model(tiny.join("llama.gguf")).devices(devices);
        let builder = builder.draft(draft);
        let settings = builder.settled().expect("settings").into_owned();
        let file = WeightFile::open(&settings.model).expect("a file");
        super::subject(&Opened::without_drivers(settings, &file).expect("a model"))
    };
    let own = || DraftChoice::own(Requant::Q4_0);
    let plain = subject(DraftChoice::none());
    let rows = [
        ("a drafter without weights", DraftChoice::lookup(), true),
        ("a draft model in the host's memory", own().on_device("cpu"), true),
        ("a draft model in the device's memory", own().on_device("gpu"), false),
    ];
    for (name, draft, is_same) in rows {
        assert_eq!(subject(draft) == plain, is_same, "{name}");
    }
    let other = DraftChoice::model("other.gguf").on_device("gpu");
    assert_ne!(subject(other), subject(own().on_device("gpu")), "another draft model");
}

#[test]
fn a_path_stays_one_word() {
    let cases = [
        ("/a/b.gguf", "/a/b.gguf"),
        ("/my models/b.gguf", "'/my models/b.gguf'"),
        ("it's", r"'it'\''s'"),
    ];
    for (word, want) in cases {
        assert_eq!(in_shell(word), want);
    }
}
