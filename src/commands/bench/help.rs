//! What `bench --help` says after the options.

pub(super) const EXAMPLES: &str = "\
Examples:
  lapwing bench -m FILE.gguf -p 512 -n 128 -t 2 -r 5
  lapwing bench -m FILE.gguf -p 128,512,1024 -n 0
  lapwing bench -m FILE.gguf -p 0 -n 128 -d 0,512,4000
  lapwing bench -m FILE.gguf -t 2 --vs llama.cpp=/path/to/llama-bench --save today.json
  lapwing bench -m FILE.gguf -t 2 --vs openvino=/path/to/venv/bin/python
  lapwing bench -m FILE.gguf -t 2 --against today.json
  lapwing bench --device phone --strategy all --length 135,300,525 --html strategies.html
  lapwing bench --device cpu+npu --strategy cpu-only,chunk-graph,row-cut --length 300

ppN: N token ids, different in each run and alone in the engine, from their admission to the first
token that follows them. tgN: generation after the begin token alone; N + 1 tokens are generated and
the N gaps between them timed; end tokens are not chosen. ppN@dD, tgN@dD: the same after D tokens;
of a prompt, the time of D + N ids less that of D. Every test runs once more beforehand, unmeasured.
N = 0 leaves a test out. With --trace all runs are recorded, which takes up to 1 % of their speed.

With --vs, this engine and others run in turn on the same file with the same number of threads: -r
times a process of each, and each process runs every test once to warm up (llama-bench: the prompt
without its context, and one token) and once measured. Ratios are of neighbours in time. --kv,
--exact, --chunk, --requant and devices are ours only; with --requant, others compute with other
weights. Also measured: the most memory that a process has resident, and the time of one that loads
the model, computes one token and ends. docs/benchmarks.md says how others are installed.

With --reading, memory as large as the weights, keys and values that a token reads is read before
and after each measured generation, with as many threads, and nothing is computed: what is left to
an engine that waits for nothing else. With --vs, the last table has the share of each engine, by
what was read beside ours.

With --length, or several names in --strategy, strategies are compared: the same prompts by each of
them on the same devices, with -r repetitions in two rounds and -n generated tokens (4 by default).
The table has the time to the first token, the makespan, the overlap of the devices, what they were
most idle by, bytes copied between them, the error of predicted waits, predicted times, and how much
this machine was later than the devices' models. --html writes all timelines onto one page.

With --json:
  {\"results\":[{\"test\":\"pp512\",\"tokens\":512,\"depth\":0,\"tokens_per_second\":{\"median\":X,
   \"min\":X,\"max\":X,\"all\":[…]},\"reading\":{…} with --reading},{\"test\":\"tg128@d512\",…}],
   \"model\":\"PATH\",\"model_bytes\":N,\"architecture\":\"…\",\"threads\":N,
   \"isa\":\"…\",\"activations\":\"int8\"|\"f32\",\"kv\":\"…\",\"requant\":{…}|null,\"chunk\":N,
   \"repetitions\":N,\"peak_resident_bytes\":N|null,\"against\":null}
  With --vs (and, but for pairs, ratios and against, what --save keeps):
  {\"version\":1,\"date\":\"…\",\"machine\":{…},\"model\":\"PATH\",\"model_bytes\":N,\"threads\":N,
   \"kv\":\"…\",\"requant\":{…}|null,\"settings\":\"…\",\"engines\":[{\"name\":\"lapwing\",
   \"version\":\"…\",\"results\":[…],\"peak_bytes\":{…}|null,\"one_token_ms\":{…}},…],
   \"pairs\":N,\"same_weights\":true,\"by_reading\":[…],\"ratios\":[{\"engine\":\"llama.cpp\",\"what\":\"pp512\",
   \"of_pairs\":{…},\"of_medians\":X},…],\"against\":null}
  Strategies compared:
  {\"model\":\"…\",\"devices\":[…],\"lengths\":[{\"tokens\":N,\"fastest\":\"…\",\"chosen_by_auto\":\"…\",
   \"strategies\":[{\"strategy\":\"…\",\"ttft_ms\":X,\"makespan_ms\":X,\"overlap\":X,…}],\"absent\":[…]}],…}";
