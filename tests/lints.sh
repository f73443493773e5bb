#!/bin/sh
# What is checked without running anything: lints of all targets, the documentation, optional features alone, and
# what a package of each crate would hold. It takes a target directory of its own, so that it can run beside a build.
set -eu
cd "$(dirname "$0")/.."
export CARGO_TARGET_DIR=target/lints
begin=$(date +%s)
step() {
    echo "== $(($(date +%s) - begin)) s: $*"
}

step "lints"
cargo clippy --workspace --all-targets --quiet -- -D warnings

step "documentation"
RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --quiet

step "libraries without optional features, and with one alone"
cargo clippy --no-default-features --quiet -p lapwing-kernels -p lapwing-traces -p lapwing-plan \
    -p lapwing-actors -p lapwing-engine -p lapwing -- -D warnings
# `lints.sh each` tries each feature alone; otherwise those that bring most code with them.
features="serve simulate"
[ "${1:-}" != each ] || features="compare fetch opencl openvino qnn schemars serve simulate structured"
for feature in $features; do
    cargo clippy --no-default-features --features "$feature" --quiet -p lapwing -- -D warnings
done

step "packages of all crates"
cargo package --workspace --exclude lapwing-examples --no-verify --allow-dirty --quiet
step "end"
