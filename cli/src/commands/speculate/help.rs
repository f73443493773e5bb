//! The text after the options in `speculate --help`.

pub(super) const EXAMPLES: &str = "\
Examples:
  lapwing speculate
  lapwing speculate --acceptance 0.76,0.93 --draft-time 0.38 --draft-length 1,3,5,auto
  lapwing speculate --acceptance 0.5,0.6,0.7,0.8,0.9 --draft-time 0.1,0.6 --plot async.svg
  lapwing speculate --acceptance 0.5,0.6,0.7,0.8,0.9 --draft-time 0.1,0.3,0.5,0.7 --region gain.svg
  lapwing speculate --bandwidth 0.9         two devices that share one memory
  lapwing speculate --one-device --growth 0.15
  lapwing speculate --target-devices 1,2,4 --draft-time 0.05 --draft-length 2
  lapwing speculate --requests 1,2,4 --target-devices 2,4
  lapwing speculate --schedule sync --draft-length 5 --sync-bonus-pass    as published decoders
  lapwing speculate --schedule async --pre-verify --post-verify            as PEARL
  lapwing speculate --acceptance-at 0.9,0.7,0.5    by position in a draft
  lapwing speculate --acceptance-of run.json       as in a run with --draft and --json

The engine's own scheduler, workers and drafts run on two models whose passes take the stated
times. With --target-devices, the target's layers are divided over several devices, so that as many
passes run at a time: of several requests, or of one request whose asynchronous drafts are sent
ahead. Passes slow down while the bandwidth that all take is above 1 in sum.

With --json:
  {\"form\":{\"sync_bonus_pass\":true|false,\"pre_verify\":true|false,\"post_verify\":true|false},
   \"runs\":[{\"acceptance\":F|null,\"requests\":N,\"target_devices\":N,\"draft_time\":F,\"length\":N|null,
   \"schedule\":\"sync|async\",\"speed_up\":F,\"tokens_per_step\":F,\"accepted\":F|null,
   \"positions\":[[VERIFIED,ACCEPTED],…],\"draft_rows\":F,\"wasted_rows\":N,\"draft_rows_wasted\":N}]}
  acceptance: null if it is by position; speed_up: multiple of the speed without drafts;
  accepted: share of the verified tokens; draft_rows: rows of the draft model for each
  generated token; 1 if every draft is right.";
