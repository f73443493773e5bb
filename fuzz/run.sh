#!/bin/sh
# Fuzzes the parsers of weight files, of older weight files and of recordings.
# usage: fuzz/run.sh SECONDS [TARGET]    runs all targets, or one, for that many seconds each
# New inputs are written to fuzz/target; the committed corpus in fuzz/corpus is only read.
set -eu
seconds=${1:?usage: fuzz/run.sh SECONDS [TARGET]}
cd "$(dirname "$0")/.."

# cargo-fuzz only starts other programs, so a debug build is enough and takes less time to install.
command -v cargo-fuzz >/dev/null 2>&1 || cargo install cargo-fuzz --version 0.13.2 --locked --debug

# FUZZ_TOOLCHAIN=stable selects the default toolchain even if nightly is installed.
if [ "${FUZZ_TOOLCHAIN:-nightly}" = nightly ] && cargo +nightly --version >/dev/null 2>&1; then
    toolchain=+nightly
else
    toolchain=
    export RUSTC_BOOTSTRAP=1
fi

targets=${2:-gguf legacy trace}
for target in $targets; do
    # shellcheck disable=SC2086
    cargo $toolchain fuzz build "$target"
done

# Each target uses one thread, so the targets run in parallel.
set --
for target in $targets; do
    scratch=fuzz/target/corpus/$target
    mkdir -p "$scratch"
    set -- "$@" "cargo $toolchain fuzz run $target $scratch fuzz/corpus/$target -- -verbosity=0 \
        -max_total_time=$seconds -max_len=8192 -rss_limit_mb=512 -malloc_limit_mb=200 -timeout=10 -print_final_stats=1"
done
sh tests/side_by_side.sh "$@"
