#!/bin/sh
# Runs the clients that people use against `lapwing serve` on loopback: openai (two major versions), ollama, anthropic,
# litellm and langchain-openai of Python; openai, ollama, ai and @openai/agents of npm; the page in headless Chromium; a reader of
# KV events with pyzmq and msgspec.
#
# usage: run.sh LAPWING FOLDER
#
# LAPWING is the program, FOLDER takes the clients, which install.sh installs if they are not there.
set -eu
[ $# -eq 2 ] || { sed -n '2,9p' "$0"; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
program=$(realpath "$1")
sh "$here/install.sh" "$2"
folder=$(cd "$2" && pwd)

# Starts a server on a free port, which it prints.
start() {
    : > "$folder/listening"
    "$program" serve --json --listen 127.0.0.1:0 --log json "$@" > "$folder/listening" 2> "$folder/log" &
    server=$!
    trap 'kill "$server" 2>/dev/null || true' EXIT
    for _ in $(seq 100); do
        [ -s "$folder/listening" ] && break
        kill -0 "$server" || { cat "$folder/log"; exit 1; }
        sleep 0.1
    done
    LAPWING_URL=http://$(sed 's/^{"address":"\([^"]*\)".*/\1/' "$folder/listening")
    export LAPWING_URL
}
# Ends it with SIGTERM: the exit code is 0.
stop() {
    kill -TERM "$server"
    wait "$server"
    trap - EXIT
}
# Whether the log has a text.
logs() {
    grep -q "$1" "$folder/log"
}
fail() {
    echo "failed: $*"
    tail -n 20 "$folder/log"
    exit 1
}
judge() {
    timeout 300 "$@" || fail "$*"
}
start
judge "$folder/older/bin/python" "$here/openai_client.py"
judge "$folder/newer/bin/python" "$here/openai_client.py"
judge "$folder/newer/bin/python" "$here/others_client.py"
cp "$here/clients.mjs" "$here/page.mjs" "$folder/npm/"
judge node "$folder/npm/clients.mjs"
if command -v chromium > /dev/null; then
    judge node "$folder/npm/page.mjs"
elif [ -n "${LAPWING_TEST:-}" ]; then
    echo "chromium is missing" >&2
    exit 1
fi

# Every answer is in the log, its prompt only if asked for, and no request has failed in the server.
stop
logs '"message":"request ended"' || fail "no answer is in the log"
if logs '"level":"ERROR"'; then fail "a request has failed in the server"; fi
if logs colour; then fail "a prompt is in the log"; fi
start --log-prompts
judge python3 -c "
import os, urllib.request
body = b'{\"prompt\": \"Name a colour.\", \"max_tokens\": 2}'
urllib.request.urlopen(os.environ['LAPWING_URL'] + '/v1/completions', body).read()"
stop
logs '"prompt":"Name a colour."' || fail "the prompt is not in the log"

# Readers of KV events, in both forms. The cache holds 512 tokens.
for form in map array; do
    start -c 256 --kv-events tcp://127.0.0.1:0 --kv-events-replay tcp://127.0.0.1:0 --kv-events-form $form
    LAPWING_LISTENING=$(cat "$folder/listening") LAPWING_FORM=$form judge "$folder/events/bin/python" "$here/kv_events.py"
    stop
done
echo "lapwing serve: all clients are served"
