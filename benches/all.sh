#!/bin/sh
# Every claim about speed that has a bound, one bench after another: each fails if its bound is not kept. By hand on an
# idle machine, in about half an hour on two cores: no test judges by time, since a busy machine would break it.
#
# usage: sh benches/all.sh FILE.gguf     a small model, such as SmolLM2 135M
set -u
model=$(realpath "${1:?usage: sh benches/all.sh FILE.gguf}")
cd "$(dirname "$0")/.."
failed=
# A bench, by package and name, with its own arguments.
bench() {
    package=$1 name=$2
    shift 2
    printf '\n== %s\n' "$name"
    cargo bench --quiet -p "$package" --bench "$name" -- "$@" || failed="$failed $name"
}
bench lapwing-actors wait
bench lapwing-actors hop
bench lapwing-actors decisions
bench lapwing-actors short_runs
bench lapwing-traces exports
printf '\n== record\n'
cargo bench --quiet -p lapwing-traces --features layer --bench record || failed="$failed record"
printf '\n== page\n'
LAPWING_JUDGE_TIMES=1 sh traces/tests/browser/run.sh || failed="$failed page"
bench lapwing trace_cost "$model"
bench lapwing span_cost "$model"
bench lapwing wait_modes "$model"
bench lapwing mapped "$model"
bench lapwing overlap "$model"
bench lapwing simulated_vs_live "$model"
# Without OpenVINO it fails: sh tests/openvino/install.sh FOLDER installs it, LAPWING_OPENVINO names FOLDER/libs.
bench lapwing first_prompt "$model"
if [ -n "$failed" ]; then
    printf '\nnot kept:%s\n' "$failed"
    exit 1
fi
printf '\nevery bound is kept\n'
