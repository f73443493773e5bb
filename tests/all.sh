#!/bin/sh
# Installs what the tests need, and runs all of them. Needs Rust, a C compiler, Python with pip, Node
# with npm, and apt (for the AArch64 emulator, Chromium and an OpenCL driver only).
set -eu
cd "$(dirname "$0")/.."

begin=$(date +%s)
since=$begin
current=
table=
minutes() {
    printf '%3d:%02d' $(($1 / 60)) $(($1 % 60))
}
# Begins a step, and notes the time of the step before it.
step() {
    now=$(date +%s)
    if [ -n "$current" ]; then
        table="$table$(minutes $((now - since)))  $current
"
    fi
    since=$now
    current=$*
    printf '\n== %s %s\n' "$(minutes $((now - begin)))" "$*"
}

step "format and lints"
cargo fmt --all -- --check
cargo clippy --workspace --all-targets -- -D warnings

step "documentation"
RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --quiet

step "libraries without optional features, and with each alone"
cargo clippy --no-default-features --quiet -p lapwing-kernels -p lapwing-traces -p lapwing-plan \
    -p lapwing-actors -p lapwing -- -D warnings
for feature in compare fetch opencl simulate; do
    cargo clippy --no-default-features --features "$feature" --quiet -p lapwing -- -D warnings
done

step "packages of all crates"
cargo package --workspace --exclude lapwing-examples --no-verify --allow-dirty --quiet

# Builds everything with the same features, so that nothing is compiled twice. Kernels are optimised in
# tests, too.
step "build"
cargo test --workspace --features lapwing-traces/layer --no-run --quiet

step "models and vocabularies"
target/debug/lapwing pull smollm2-135m-instruct
target/debug/lapwing pull gemma3-270m
LAPWING_TEST_WORK="${LAPWING_TEST_WORK:-$PWD/target/llama.cpp-sources}"
export LAPWING_TEST_WORK
sh tests/reference/fetch.sh "$LAPWING_TEST_WORK"

step "OpenCL drivers"
sh tests/opencl/install.sh target/opencl
POCL_CACHE_DIR=$PWD/target/opencl/pocl
export POCL_CACHE_DIR
mkdir -p "$POCL_CACHE_DIR"

# In full: `cargo test` alone runs a part of the random cases, and leaves out the tests marked as long.
step "kernels, traces, actors, facade, command line, whole models; OpenCL devices with PoCL"
LAPWING_TEST=full cargo test --workspace --features lapwing-traces/layer --quiet -- --include-ignored

step "OpenCL devices with Intel's CPU runtime"
OPENCL_DYLIB_PATH=$PWD/target/opencl/intel/lib/libintelocl.so LAPWING_TEST=full \
    cargo test --workspace --features lapwing-traces/layer --lib --test integration --quiet opencl \
    -- --include-ignored

# The examples of the build above, with the features of the whole workspace.
EXAMPLES=$PWD/target/debug/examples
export EXAMPLES

# None of these is timed, and some wait, so they run concurrently.
step "examples, exports in Perfetto's trace processor, and every interleaving of the thread pool, of the completion" \
    "flag, of joins and of the recorder's ring"
examples=
for example in hello_prompt embeddings timeline trace_any_tokio_app custom_strategy custom_policy custom_drafter compare_strategies reproduce_heterollm; do
    examples="$examples${examples:+ && }$EXAMPLES/$example"
done
LAPWING_TEST=full
export LAPWING_TEST
sh tests/side_by_side.sh "$examples" "sh traces/tests/perfetto/run.sh" \
    "RUSTFLAGS='--cfg loom' CARGO_TARGET_DIR=target/loom cargo test --profile interleavings --quiet \
    -p lapwing-kernels -p lapwing-traces -p lapwing-actors --lib -- interleavings"

step "the page in headless Chromium"
sh traces/tests/browser/run.sh

# Each compiles a crate of its own on one core.
step "AArch64 kernels under emulation, and half a minute of fuzzing for each reader"
sh tests/side_by_side.sh "sh .ci/neon.sh --quiet" "sh fuzz/run.sh 30"

step "all tests passed"
printf '%s%s  in all\n' "$table" "$(minutes $(($(date +%s) - begin)))"
