use lapwing_plan::registry::Entry;

use super::*;

#[test]
fn a_choice_has_a_name_and_makes_drafts_for_each_request() {
    let others =
        [NONE, AUTO, "mtp", "suffix:share=0.2", "self:q8_0", "self:q4_1", "self:int4:64:min"];
    for name in known().iter().map(Entry::name).chain(others) {
        assert_eq!(name.parse().map(|choice: DraftChoice| choice.name() == name), Ok(true));
    }
    assert!(DraftChoice::none().drafts().is_none());
    assert_eq!(DraftChoice::default().name(), AUTO);
    assert_eq!(DraftChoice::default().settled(false).name(), NONE);
    let settled = DraftChoice::default().settled(true);
    assert_eq!((settled.name(), settled.drafts().is_some()), ("mtp", true));
    assert!(DraftChoice::lookup().drafts().is_some());
    let file: DraftChoice = "some/small.gguf".parse().expect("a file");
    assert_eq!((file.name(), file.draft_model().is_some()), ("small", true));
    for wrong in ["oracle", "self:", "self:q9", ""] {
        let unknown = wrong.parse::<DraftChoice>().expect_err(wrong).to_string();
        assert!(unknown.contains("none, lookup") && unknown.contains("self:q4_0"), "{unknown}");
    }
    let wrong = "suffix:share=2".parse::<DraftChoice>().expect_err("too much").to_string();
    assert!(wrong.contains("share of the drafter suffix is '2'"), "{wrong}");
}

#[test]
fn schedule_and_device_are_those_of_a_draft_model_only() {
    let set = |choice: DraftChoice| choice.schedule(Schedule::Asynchronous).on_device("gpu");
    let own = set(DraftChoice::own(Requant::Q4_0));
    let model = own.draft_model().expect("a model");
    assert_eq!((model.schedule, model.device.as_deref()), (Schedule::Asynchronous, Some("gpu")));
    assert!(set(DraftChoice::lookup()).draft_model().is_none());
}
