//! The text after the options in `simulate --help`.

pub(super) const EXAMPLES: &str = "\
Examples:
  lapwing simulate -p 525 -n 32 --strategy pipe
  lapwing simulate --model llama-3.2-3b --strategy tensor-level --fast-sync off
  lapwing simulate --device cpu+npu --strategy chunk-graph -p 1024
  lapwing simulate --device gpu+npu --device pim=throttled:kind=gpu,gflops=500,gbps=200
  lapwing simulate --soc fast-gpu --set sync.fast=2x --interference game
  lapwing simulate --shape layers=16,dim=2048,ffn=8192,heads=32,kv-heads=8,vocab=128256,bits=4.5
  lapwing simulate --set noise.spread=0.05 --repeat 20
  lapwing simulate --strategy tensor-level --trace sim.lwt && lapwing timeline sim.lwt
  lapwing calibrate --device phone -o phone.toml
  lapwing simulate --soc phone.toml --model FILE.gguf -p 300 --trace sim.lwt
  lapwing timeline real.lwt sim.lwt       compare the same devices, live and simulated

  lapwing simulate --soc phone --requests 2x30+150,860+1@1s,1630+1@1s --strategy auto
  lapwing simulate --model llama-3-8b --draft llama-3.2-3b --acceptance 0.8 --ablate \\
      --requests 2x64+100,512+1@500ms

With --requests, requests arrive at their times, in tokens of prompt and answer, and a model may
draft for them. --ablate turns prompts beside streams, drafts and cuts on and off, alone and
together.

The devices of a live engine are simulated warm, as they are measured: all graphs are prepared.
Their power and other load are unknown: energy is null, and --interference and --fast-sync off are
rejected.

With --json:
  {\"soc\":\"…\",\"device\":\"…\"|null,\"model\":\"…\",\"strategy\":\"…\",\"prompt\":N,\"decode\":N,
   \"fast_sync\":true|false,\"order_swap\":true|false,\"moment\":\"any|class|off\",
   \"chunk\":N|null,\"permits\":N|null,
   \"interference\":\"none|game\",\"verify\":N,\"stepped_preparation\":true|false,\"seed\":N,
   \"prefill_ms\":F,\"prefill_tokens_per_second\":F,\"decode_ms\":F|null,
   \"decode_tokens_per_second\":F|null,\"makespan_ms\":F,\"lower_bound_ms\":F,\"preparation_ms\":F,
   \"energy_j\":F|null,\"power_w\":F|null,\"prefill_j\":F|null,\"prefill_w\":F|null,
   \"decode_j\":F|null,\"decode_w\":F|null,\"decode_gb_per_s\":F|null,
   \"overlap\":F,\"syncs\":N,\"frames_per_second\":F|null,
   \"devices\":[{\"name\":\"…\",\"busy_ms\":F,\"runs\":N}],
   \"repeat\":null|{\"count\":N,\"means\":[{\"figure\":\"…\",\"mean\":F,\"low\":F,\"high\":F}]}}
With --json and --requests:
  {\"soc\":\"…\",\"device\":\"…\"|null,\"model\":\"…\",\"draft\":\"…\"|null,\"seed\":N,
   \"runs\":[{\"acceptance\":F|null,\"overlaps\":{\"prompts\":true|false,\"drafts\":…,\"cuts\":…},
     \"strategy\":\"…\",\"makespan_ms\":F,\"ttft_max_ms\":F,\"gap_max_ms\":F,\"tokens_per_second\":F,
     \"drafted\":N,\"accepted\":N,\"concurrent\":{\"draft\":F,\"draft+verify\":F,…},
     \"clients\":{\"NAME\":{\"ttft_ms\":{…},\"response_ms\":{…},\"response_per_token_ms\":{…}}},
     \"requests\":[{\"client\":\"…\",\"at_ms\":F,\"prompt\":N,\"tokens\":N,\"ttft_ms\":F,\"end_ms\":F,
       \"gap_median_ms\":F|null,\"gap_max_ms\":F|null,\"drafted\":N,\"accepted\":N}],
     \"devices\":[{\"name\":\"…\",\"busy_ms\":F,\"runs\":N}]}]}
  concurrent: shares of the makespan in which stages of each of these kinds ran, each on a device of
  its own, as `lapwing timeline` counts them.";
