//! The text after the options in `plan --help`.

pub(super) const EXAMPLES: &str = "\
Examples:
  lapwing plan -p 525 --explain --device phone
  lapwing plan -p 1000 --explain --with streams=2,prompts=1000 --device phone
  lapwing plan -p 300 --device cpu --device npu --strategy sequence-cut
  lapwing plan -p 300 --explain -m model-f16.gguf --draft self:q4_0
  lapwing plan -p 300 --explain --device cpu+gpu=opencl --profile lapwing-report.json

predicted_ms is for a warm engine, with all graphs of NPUs ready; first_ms for the first prompt
now, with the graphs that a start reads from disk; cold_ms for a first prompt without any graph.
Until the graphs are ready, other devices compute; with --wait-for-graphs the prompt waits
instead. The predictions come from the profile that `lapwing profile` has stored for these
devices, otherwise from the devices' own models, in which the rates of a CPU are those of a short
timing. The decode step is that of a single sequence after the prompt. With a drafter, --explain
also shows how long the drafts of that sequence would be, by the share of drafted tokens that are
accepted, and why.

With --with, the prompt arrives while other prompts are computed and streams generate. The table has
the routes that its first chunk may take: its time alone, when it ends beside what the devices have
to do, and the time of all prompts if each chunk takes such a route, beside the bound: the least
time of these prompts on these devices, on any routes and in any order, without the steps of the
streams. The last line is that of chunks that each take the route on which they end first.

With --json:
  {\"length\":N,\"strategy\":\"…\",\"source\":\"…\",\"predicted_ms\":X,\"cold_ms\":X,
   \"first_ms\":X,\"graphs\":{\"needed\":N,\"ready\":N,\"read_ms\":X,\"prepare_ms\":X,\"waits\":false},
   \"chunks\":[{\"rows\":N,\"context\":N,\"reason\":\"…\",\"stages\":N,\"divided\":N,
   \"predicted_ms\":X|null,\"kinds\":[{\"count\":N,\"device\":\"…\",\"ops\":N,…,
   \"parts\":[…]},…],\"transfers\":[{\"device\":\"…\",\"to_host\":true,\"count\":N,\"bytes\":N},…]},…],
   \"decode\":{…},
   \"candidates\":[{\"strategy\":\"…\",\"predicted_ms\":X,\"busiest_ms\":X,\"chunks\":N,\"why_not\":\"…\"},…],
   \"winner\":\"…\",\"why\":\"…\",
   \"drafts\":null|{\"drafter\":\"…\",\"draft_ms\":X|null,\"verify_ms\":[X,…],\"lengths\":
   [{\"acceptance\":X,\"length\":N,\"speed_up\":X,\"pays\":true},…],\"why\":\"…\"}}
  candidates, winner, why and drafts: only with --explain; with --with also
   \"moment\":{\"streams\":N,\"prompts\":[N,…],\"rows\":N,\"step_ms\":X|null,\"step_gap_ms\":X|null,
   \"classes\":[[\"…\",…],…],\"devices\":[{\"device\":\"…\",\"free_ms\":X,\"price\":X},…],
   \"area_ms\":X,\"path_ms\":X,\"bound_ms\":X,\"routes\":[{\"devices\":\"…\",\"strategy\":\"…\",
   \"alone_ms\":X,\"end_ms\":X,\"all_ms\":X,\"ratio\":X,\"chosen\":true},…],
   \"all_ms\":X,\"ratio\":X}.";
