//! The text after the options in `bench --help`.

pub(super) const EXAMPLES: &str = "\
Examples:
  lapwing bench -m FILE.gguf -p 512 -n 128 -t 2 -r 5
  lapwing bench -m FILE.gguf -p 128,512,1024 -n 0
  lapwing bench -m FILE.gguf -p 0 -n 128 -d 0,512,4000
  lapwing bench -m FILE.gguf -t 2 --vs llama.cpp=/path/to/llama-bench -o today.json
  lapwing bench -m FILE.gguf -t 2 --vs openvino=/path/to/venv/bin/python
  lapwing bench -m FILE.gguf -t 2 --against today.json
  lapwing bench -m FILE.gguf -p 0 -n 128 --draft lookup
  lapwing bench -m FILE.gguf -p 0 -n 128 --draft mtp --acceptance 0.8
  lapwing bench --device phone --strategy all -p 135,300,525 --html strategies.html
  lapwing bench --device cpu+npu --strategy cpu-only,chunk-graph,row-cut -p 300

ppN: N token ids, different in each run and alone in the engine, timed from admission to the first
token that follows. tgN: generation after only the begin token; N + 1 tokens are generated, the N
intervals between them are timed, and end tokens are never sampled. ppN@dD, tgN@dD: the same after
D tokens; for a prompt, the time of D + N ids minus that of D. Every test has one unmeasured warm-up
run. With a strategy that prepares graphs while a prompt waits (online-prepare), each run of a
prompt has a new engine, so that its time includes the preparation. N = 0 skips a test. With --trace
all runs are recorded, which costs up to 1 % of their speed.

With --vs, this engine and the others run alternately on the same file with the same number of
threads: -r times one process of each. Each process runs every test once to warm up (llama-bench:
the prompt without its context, and one token) and once measured. Ratios compare runs made back to
back. --kv, --exact, --activations, --chunk, --requant, --attention, --share-kv and devices apply to
this engine only; with --requant, the others use different weights. Also measured: maximum resident
memory, and the time of a process that loads the model, computes one token and ends.
docs/benchmarks.md explains how to install the others.

With --reading, memory as large as the weights, keys and values that a token reads is read before
and after each measured generation, by as many threads, without computing: an upper bound for any
engine that is bound by memory bandwidth. With --vs, the last table shows the share of this bound
that each engine reaches, with the bandwidth measured next to this engine.

With --draft, each run of a generation is a pair in the same engine, with drafts and without, in
alternating order. The speed is that with drafts; below it are the speed-up of the pairs, the share
of drafted tokens that was accepted, also by position in a draft, tokens per pass and wasted rows.

With --html, or several names in --strategy, strategies are compared: each of them runs the same
prompts on the same devices, with -r repetitions in two rounds and -n generated tokens (default 4).
The table shows time to first token, makespan, overlap of the devices, the main cause of idle time,
bytes copied between devices, the error of predicted waits, predicted times, and by how much this
machine was slower than the devices' models. --html writes all timelines to one page.

With --json:
  {\"results\":[{\"test\":\"pp512\",\"tokens\":512,\"depth\":0,\"tokens_per_second\":{\"median\":X,
   \"min\":X,\"max\":X,\"all\":[…]},\"reading\":{…} with --reading,
   \"draft\":{…} with --draft},{\"test\":\"tg128@d512\",…}],
   \"model\":\"PATH\",\"model_bytes\":N,\"architecture\":\"…\",\"threads\":N,\"cores\":\"…\"|null,
   \"isa\":\"…\",\"activations\":\"…\",\"kv\":\"…\",\"requant\":{…}|null,
   \"attention\":[\"FIRST-LAST:MASK\",…]|null,\"share_kv\":\"…\"|null,\"chunk\":N,
   \"repetitions\":N,\"peak_resident_bytes\":N|null,\"against\":null}
  With --vs (-o writes the same without pairs, ratios and against):
  {\"version\":1,\"date\":\"…\",\"machine\":{…},\"model\":\"PATH\",\"model_bytes\":N,\"threads\":N,
   \"kv\":\"…\",\"requant\":{…}|null,\"attention\":[…]|null,\"share_kv\":\"…\"|null,
   \"settings\":\"…\",\"engines\":[{\"name\":\"lapwing\",\"version\":\"…\",\"results\":[…],
   \"peak_bytes\":{…}|null,\"one_token_ms\":{…}},…],\"pairs\":N,\"same_weights\":true,
   \"by_reading\":[…],\"ratios\":[{\"engine\":\"llama.cpp\",\"what\":\"pp512\",\"of_pairs\":{…},
   \"of_medians\":X},…],\"against\":null}
  With several strategies:
  {\"model\":\"…\",\"devices\":[…],\"lengths\":[{\"tokens\":N,\"fastest\":\"…\",\"chosen_by_auto\":\"…\",
   \"strategies\":[{\"strategy\":\"…\",\"ttft_ms\":X,\"makespan_ms\":X,\"overlap\":X,…}],\"absent\":[…]}],…}";
