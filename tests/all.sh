#!/bin/sh
# Installs what the tests need, and runs all of them. Needs Rust, a C compiler, Python with pip, Node
# with npm, and apt (for the AArch64 emulator, Chromium and an OpenCL driver only).
#
# usage: all.sh [full]    `full` tries all cases of each test, which takes longer; without it, a few are tried
set -eu
cd "$(dirname "$0")/.."
LAPWING_TEST=${1:-few}
case $LAPWING_TEST in
    few)
        seconds=20
        # Intel's driver takes minutes to compile the persistent kernels of these models. Those of three other models are tested.
        long="--skip persistent_kernel_with_windows --skip persistent_kernel_with_sinks --skip persistent_kernel_with_6 \
            --skip persistent_kernel_beside"
        ;;
    full) seconds=60 long= ;;
    *) echo "usage: all.sh [full]" >&2; exit 2 ;;
esac

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
    free=$(df -Pk . | awk 'NR == 2 { printf "%.1f GB of disk free", $4 / 1e6 }')
    printf '\n== %s (%s) %s\n' "$(minutes $((now - begin)))" "$free" "$*"
}

# However the tests end, the times of the steps are printed last.
trap 'code=$?; step "$([ $code -eq 0 ] && echo "all tests passed" || echo "failed")"; printf "%s%s  in all\n" "$table" \
    "$(minutes $(($(date +%s) - begin)))"' EXIT

step "format"
cargo fmt --all -- --check

# The build has everything with the same features, so that nothing is compiled twice. Kernels are optimised in tests, too.
# Lints compile one crate after another at their end, and the build its last programs, so each has about one core all the
# time. Installing waits for the network and the disk most of the time.
step "build; beside it lints, documentation and features, and clients of the server, OpenCL drivers, OpenVINO, QNN and the" \
    "AArch64 emulator are installed"
mkdir -p target
installs="sh tests/serve/install.sh target/clients && sh tests/opencl/install.sh target/opencl"
installs="$installs && sh tests/openvino/install.sh target/openvino && sh .ci/neon.sh install"
# Only where Qualcomm's terms are accepted: without QNN its tests say that they are skipped.
if [ "${LAPWING_TEST_QNN:-}" = 1 ]; then
    installs="$installs && sh tests/qnn/install.sh target/qnn"
    LAPWING_QNN=$PWD/target/qnn/onnxruntime_qnn
    export LAPWING_QNN
else
    unset LAPWING_TEST_QNN
    echo "QNN is not tested: LAPWING_TEST_QNN=1 accepts Qualcomm's terms and installs it (docs/qnn.md)"
fi
lints="sh tests/lints.sh"
# The gate uses nothing of the lints again, and a machine that tests may have little room.
[ "${LAPWING_TEST_ROOM:-}" != little ] || lints="$lints && rm -rf target/lints"
sh tests/side_by_side.sh "$lints" "$installs" \
    "cargo test --workspace --features lapwing-traces/layer --no-run --quiet"

step "models and vocabularies"
target/debug/lapwing pull smollm2-135m-instruct
target/debug/lapwing pull gemma3-270m
LAPWING_TEST_WORK="${LAPWING_TEST_WORK:-$PWD/target/llama.cpp-sources}"
export LAPWING_TEST_WORK
sh tests/reference/fetch.sh "$LAPWING_TEST_WORK"

# The kernels for OpenCL are tested one after another, and drivers compile each on one core; AArch64 and the fuzzers compile and
# run on about one core each; the examples and the clients of the server mostly wait. So three rows of work run side by side.
# None of these is timed.
#
# Intel's driver runs all tests of these kernels, and the engine's tests with a queue. PoCL takes minutes to compile, so as a
# second driver it runs a few cases of each and a few formats, beside Oclgrind, which checks accesses of the kernels whatever the
# driver.
step "kernels, traces, actors, facade, command line, whole models, examples, exports in Perfetto's trace processor, the pages in" \
    "headless Chromium, clients of the server; beside them OpenCL devices with Intel's CPU runtime, fuzzing of each reader, every" \
    "interleaving of lock-free code; OpenCL devices with PoCL, AArch64 kernels under emulation"
POCL_CACHE_DIR=$PWD/target/opencl/pocl
export POCL_CACHE_DIR
mkdir -p "$POCL_CACHE_DIR"
LAPWING_TEST_PROGRAMS=$PWD/target/opencl/programs
export LAPWING_TEST_PROGRAMS
mkdir -p "$LAPWING_TEST_PROGRAMS"
LAPWING_OPENVINO=$PWD/target/openvino/libs
export LAPWING_OPENVINO
export LAPWING_TEST
# The examples of the build above, with the features of the whole workspace.
EXAMPLES=$PWD/target/debug/examples
export EXAMPLES
tests="cargo test --workspace --features lapwing-traces/layer --quiet"
formats="--skip q1_0 --skip q2_ --skip q3_k --skip q4_1 --skip q5_ --skip iq1_ --skip iq2_ --skip iq3_ --skip iq4_ --skip mxfp4 --skip nvfp4 --skip tq --skip bf16"
intel="OPENCL_DYLIB_PATH='$PWD/target/opencl/intel/lib/libintelocl.so'"
general="$tests -- --include-ignored --skip opencl_tests:: --skip opencl_device_tests:: --skip an_opencl_"
all_kernels="(export $intel && $tests --lib opencl_ -- --include-ignored --skip races $long)"
few_kernels="LAPWING_TEST=few $tests --lib opencl_ -- $formats"
queues="(export $intel && $tests --test integration opencl -- --include-ignored && $tests --test cli a_signal_meets_drivers)"
interleavings="RUSTFLAGS='--cfg loom' CARGO_TARGET_DIR=target/loom cargo test --profile interleavings --quiet \
    -p lapwing-model -p lapwing-cpu -p lapwing-traces -p lapwing-actors --lib -- interleavings"
others="sh traces/tests/perfetto/run.sh && sh traces/tests/browser/run.sh"
others="$others && sh tests/serve/run.sh target/debug/lapwing target/clients"
for example in hello_prompt embeddings tools timeline trace_any_tokio_app custom_strategy custom_policy custom_drafter own_device compare_strategies three_overlaps otlp reproduce_heterollm; do
    others="$others && $EXAMPLES/$example"
done
sh tests/side_by_side.sh "$general && $others" "$all_kernels && sh fuzz/run.sh $seconds && $interleavings" \
    "$few_kernels && $queues && sh .ci/neon.sh --quiet"
