use std::path::Path;

use lapwing_kernels::device::{GraphKey, ModelId};
use lapwing_kernels::part::{OperandOrder, Share};
use lapwing_kernels::weights::WeightFile;

use super::*;
use crate::config::Settings;

/// A plan is made from the specification where there is no device, so both must say the same.
#[test]
fn plan_and_device_agree_on_every_preset() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/reference/tiny/llama.gguf");
    let file = WeightFile::open(&path).expect("a weight file");
    let settings = Settings { model: path, ..Settings::default() };
    let opened = Opened::without_drivers(settings, &file).expect("a model");
    let memory = opened.allocate(None).expect("memory");
    let graph = Arc::clone(&opened.graph);
    let key = GraphKey {
        model: ModelId::default(),
        nodes: 1..3,
        features: Share::WHOLE,
        rows: 64,
        order: OperandOrder::Swapped,
    };
    let shared = Shared { opened: &opened, memory: &memory, clock: None };
    let one = Threads { count: 1, cores: None };
    let phone = DeviceSpec::list("phone").expect("presets");
    let others = "cpu+gpu+npu+a=throttled:kind=npu,sizes=32/96,budget=1000+b=systolic:array=8";
    let others = DeviceSpec::list(others).expect("devices");
    for spec in phone.iter().chain(&others) {
        let (plan, device) = (info(0, spec), build(0, spec, &one, &shared).expect("a device").info);
        assert_eq!(format!("{plan:?}"), format!("{device:?}"), "{spec}");
        let bytes = |info: &DeviceInfo| info.budget.as_ref().map(|b| b.graph_bytes(&graph, &key));
        assert_eq!(bytes(&plan), bytes(&device), "{spec}");
        assert_eq!(spec.is_static(), device.is_static(), "{spec}");
    }
}
