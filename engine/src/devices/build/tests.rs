use std::path::Path;

use lapwing_kernels::device::{GraphKey, ModelId};
use lapwing_kernels::kv::KvStore;
use lapwing_kernels::model::Model;
use lapwing_kernels::part::{OperandOrder, Share};

use super::*;

/// A plan is made from the specification where there is no device, so both must say the same.
#[test]
fn plan_and_device_agree_on_every_preset() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/reference/tiny/llama.gguf");
    let file = WeightFile::open(&path).expect("a weight file");
    let model = Model::from_weights(&file).expect("a model");
    let graph = Arc::new(model.graph);
    let key = GraphKey {
        model: ModelId::default(),
        nodes: 1..3,
        features: Share::WHOLE,
        rows: 64,
        order: OperandOrder::Swapped,
    };
    let in_place = InPlace::default();
    let shared = Shared {
        in_place: &in_place,
        graph: &graph,
        file: &file,
        kv: &Arc::new(KvStore::none()),
        slots: &SlotPool::default(),
        draft: None,
        isa: Isa::best(),
        activations: Activations::Int8,
        clock: None,
        programs: None,
        ranges: RangeSource::default(),
    };
    let one = Threads { count: 1, cores: None };
    let phone = DeviceSpec::list("phone").expect("presets");
    let others = "cpu+gpu+npu+a=throttled:kind=npu,sizes=32/96,budget=1000+b=systolic:array=8";
    let others = DeviceSpec::list(others).expect("devices");
    for spec in phone.iter().chain(&others) {
        let (plan, device) = (info(spec), build((0, spec), &one, &shared).expect("a device").info);
        assert_eq!(format!("{plan:?}"), format!("{device:?}"), "{spec}");
        let bytes = |info: &DeviceInfo| info.budget.as_ref().map(|b| b.graph_bytes(&graph, &key));
        assert_eq!(bytes(&plan), bytes(&device), "{spec}");
        assert_eq!(spec.is_static(), device.is_static(), "{spec}");
    }
}
