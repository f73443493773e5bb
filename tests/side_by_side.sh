#!/bin/sh
# Runs shell commands concurrently: side_by_side.sh COMMAND…
# Prints the output of each after it has ended, one after another; fails if one of them fails.
set -eu
logs=$(mktemp -d)
pids=
trap 'rm -rf "$logs"' EXIT
# shellcheck disable=SC2086
trap 'kill $pids 2>/dev/null; exit 130' INT TERM

number=0
for command in "$@"; do
    number=$((number + 1))
    (
        begin=$(date +%s)
        status=0
        sh -c "$command" || status=$?
        echo "-- ended with $status after $(($(date +%s) - begin)) s"
        exit $status
    ) >"$logs/$number" 2>&1 &
    pids="$pids $!"
done
failed=0
number=0
for pid in $pids; do
    number=$((number + 1))
    status=0
    wait "$pid" || status=$?
    eval "command=\${$number}"
    # shellcheck disable=SC2154
    printf -- '-- %s\n' "$command"
    cat "$logs/$number"
    if [ "$status" != 0 ]; then
        echo "failed with $status: $command"
        failed=1
    fi
done
exit $failed
