#!/bin/sh
# The workspace of the worker, cluster/, has versions that Dynamo pins, and is compiled by hand (.ci/cluster). This checks in seconds that
# its crates and those of this workspace still go together: nothing is compiled, and only the index of crates is read.
set -eu
cd "$(dirname "$0")/.."
if ! cargo update --quiet --workspace --locked --manifest-path cluster/Cargo.toml; then
    echo "cluster/Cargo.lock does not fit the crates of this repository. After a change of dependencies run" >&2
    echo "    cargo update --workspace --manifest-path cluster/Cargo.toml" >&2
    echo "If that finds no versions, a requirement is newer than Dynamo's pins allow: lower it in Cargo.toml." >&2
    exit 1
fi
