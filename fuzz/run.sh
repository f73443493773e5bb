#!/bin/sh
# Fuzzes the readers of weight files and of recordings: fuzz/run.sh SECONDS, for each of them;
# fuzz/run.sh SECONDS TARGET for one.
# New inputs go to fuzz/target; the kept corpus in fuzz/corpus is only read.
set -eu
seconds=${1:?usage: fuzz/run.sh SECONDS}
cd "$(dirname "$0")/.."

# It only starts others: to optimise it takes longer than it ever works.
command -v cargo-fuzz >/dev/null 2>&1 || cargo install cargo-fuzz --version 0.13.2 --locked --debug

# FUZZ_TOOLCHAIN=stable asks for the toolchain that is there even where nightly is installed.
if [ "${FUZZ_TOOLCHAIN:-nightly}" = nightly ] && cargo +nightly --version >/dev/null 2>&1; then
    toolchain=+nightly
else
    toolchain=
    export RUSTC_BOOTSTRAP=1
fi

targets=${2:-gguf trace}
for target in $targets; do
    # shellcheck disable=SC2086
    cargo $toolchain fuzz build "$target"
done

# Each uses one thread, so that they run side by side.
set --
for target in $targets; do
    scratch=fuzz/target/corpus/$target
    mkdir -p "$scratch"
    set -- "$@" "cargo $toolchain fuzz run $target $scratch fuzz/corpus/$target -- -verbosity=0 \
        -max_total_time=$seconds -max_len=8192 -rss_limit_mb=512 -malloc_limit_mb=200 -timeout=10 -print_final_stats=1"
done
sh tests/side_by_side.sh "$@"
