use super::*;
use clap::Parser;

#[derive(Debug, Parser)]
struct Line {
    #[command(flatten)]
    engine: EngineArgs,
}

#[test]
fn every_setting_reaches_another_process() {
    let all = [("--exact", "--mmap"), ("--activations row-min", "--no-mmap --no-packed-cache")];
    for (precision, memory) in all {
        let line = format!(
            "x --threads 3 --cores 0,2-3 --chunk 64 --isa avx2 --kv int8 --requant int4:128:min --attention window=8 --attention 0-1:dilated=4x2 --share-kv layers=2,heads=1 --policy fcfs --reserve peak --draft a/b.gguf --draft-schedule sync --draft-width 3 --draft-pre-verify --draft-post-verify --draft-device gpu --device cpu --device npu \
                --strategy pipe --order-swap off --ratio 6:2:1 --edge-rows 9 --place a=cpu --place b=npu \
                --wait devices=spin --wait scheduler=blocking --permits 7 {precision} --mlock {memory} --wait-for-graphs"
        );
        let given = Line::parse_from(line.split_whitespace()).engine;
        let args = given.to_args();
        assert_eq!(args.len(), line.split_whitespace().count() - 1, "{args:?}");
        let program = std::iter::once("x".to_owned());
        let passed = Line::parse_from(program.chain(args)).engine;
        assert_eq!(format!("{given:?}"), format!("{passed:?}"));
    }
}
