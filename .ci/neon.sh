#!/bin/sh
# Builds the kernels' tests for AArch64 and runs them under qemu, so that the NEON kernels run on
# any Debian machine: tests on a processor with dot products and i8mm (max), which runs every
# kernel; whole models on one with dot products (Cortex-A76) and on one without (Cortex-A53), which must
# not get an instruction that they lack. Installs missing packages if it runs as root (or with sudo).
#
# usage: neon.sh [OPTION…]    options of `cargo test`
#        neon.sh install      only installs the emulator and the linker, and touches no compiler that may be running
#
# Left to the host, which is much faster: damaged weight files, and which graphs an NPU keeps; neither has code
# for an instruction set. Of the others some try fewer cases where LAPWING_EMULATED is set.
set -eu
cd "$(dirname "$0")/.."
target=aarch64-unknown-linux-gnu

if ! command -v qemu-aarch64 >/dev/null || ! command -v aarch64-linux-gnu-gcc >/dev/null; then
    sh tests/apt.sh qemu-user gcc-aarch64-linux-gnu libc6-dev-arm64-cross
fi
[ "${1:-}" != install ] || exit 0

# The standard library for the target: from rustup, or else from the multi-arch packages
# with their own compiler, since a library fits only the compiler that built it.
if command -v rustup >/dev/null && rustup target add "$target"; then
    cargo=cargo
else
    if [ "$(id -u)" = 0 ]; then sudo=; else sudo=sudo; fi
    $sudo dpkg --add-architecture arm64
    sh tests/apt.sh rustc-web cargo-web libstd-rust-web-dev libstd-rust-web-dev:arm64
    cargo=/usr/bin/cargo
    export RUSTC=/usr/bin/rustc
fi

export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
export LAPWING_EMULATED=1
# A test loads a library that it compiles.
export LAPWING_TEST_CC=aarch64-linux-gnu-gcc
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="qemu-aarch64 -L /usr/aarch64-linux-gnu"
on() {
    cpu=$1
    shift
    echo "== $cpu"
    QEMU_CPU=$cpu "$cargo" test --target "$target" "$@"
}
on max -p lapwing-model -p lapwing-cpu -p lapwing-npu -p lapwing-kernels --lib --test allocations --test integration \
    --test tiny_models "$@" \
    -- --skip a_ready_graph_is_not_there --skip a_graph_is_evicted_too_early
on cortex-a76 -p lapwing-kernels --test tiny_models "$@" every_architecture
on cortex-a53 -p lapwing-kernels --test tiny_models "$@" every_architecture
