#!/bin/sh
# Installs what the tests need, and runs all of them. Needs Rust, a C compiler, Python with pip, Node
# with npm, and apt (for the AArch64 emulator and Chromium only).
set -eu
cd "$(dirname "$0")/.."

begin=$(date +%s)
step() {
    seconds=$(($(date +%s) - begin))
    printf '\n== %d:%02d %s\n' $((seconds / 60)) $((seconds % 60)) "$*"
}

step "format and lints"
cargo fmt --all -- --check
cargo clippy --workspace --all-targets -- -D warnings

step "documentation"
RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --quiet

step "library without optional features"
cargo check -p lapwing --no-default-features --quiet

step "kernels, traces, actors"
cargo test -p lapwing-kernels -p lapwing-traces -p lapwing-actors \
    --features lapwing-traces/layer --quiet

step "exports in Perfetto's trace processor"
sh traces/tests/perfetto/run.sh

step "the page in headless Chromium"
sh traces/tests/browser/run.sh

# The program, its tests and the examples are built at once, so that what they depend on is compiled
# once.
step "release build"
cargo test --release -p lapwing -p lapwing-examples --no-run --quiet

step "models and vocabularies"
target/release/lapwing pull smollm2-135m-instruct
target/release/lapwing pull gemma3-270m
LAPWING_TEST_WORK="${LAPWING_TEST_WORK:-$PWD/target/llama.cpp-sources}"
export LAPWING_TEST_WORK
sh tests/reference/fetch.sh "$LAPWING_TEST_WORK"

step "facade, command line, whole models"
cargo test --release -p lapwing -p lapwing-examples --quiet

step "examples"
for example in hello_prompt timeline trace_any_tokio_app custom_strategy compare_strategies reproduce_heterollm; do
    "target/release/examples/$example"
done

step "every interleaving of the thread pool, of the completion flag and of the recorder's ring"
RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR=target/loom \
    cargo test --release --quiet -p lapwing-kernels --lib pool
RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR=target/loom \
    cargo test --release --quiet -p lapwing-kernels --lib completion
RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR=target/loom \
    cargo test --release --quiet -p lapwing-traces --lib ring
RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR=target/loom \
    cargo test --release --quiet -p lapwing-actors --lib join

step "AArch64 kernels under emulation"
sh .ci/neon.sh --quiet

step "half a minute of fuzzing for each reader"
sh fuzz/run.sh 30

step "all tests passed"
