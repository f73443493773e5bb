#!/bin/sh
# Judges of other projects that take too long for the gate, or need a model of some size: schemathesis on the OpenAPI
# document, lm-eval with a local task, llama-benchy with 1, 8 and 32 requests at once. With llama-server, the last two run
# against it as well.
#
# usage: run.sh LAPWING MODEL.gguf FOLDER [LLAMA-SERVER]
#
# MODEL must have a vocabulary of byte-level BPE, such as that of SmolLM2. FOLDER takes the Python packages (1 GB) and results.
set -eu
[ $# -ge 3 ] || { sed -n '2,9p' "$0"; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
program=$(realpath "$1")
model=$(realpath "$2")
mkdir -p "$3"
folder=$(cd "$3" && pwd)
peer=${4:-}
if [ ! -e "$folder/venv/done" ]; then
    python3 -m venv "$folder/venv"
    "$folder/venv/bin/pip" install --quiet 'schemathesis>=4.32,<5' 'llama-benchy>=0.4,<0.5' 'lm-eval[api]>=0.4.13,<0.5' gguf
    touch "$folder/venv/done"
fi
bin=$folder/venv/bin
export HF_HUB_OFFLINE=1 HF_DATASETS_CACHE="$folder/datasets"

server=
shelf=
trap 'kill $server $shelf 2>/dev/null || true' EXIT

# Starts a server and waits until it has a model.
serve() {
    "$@" > "$folder/server.log" 2>&1 &
    server=$!
    for _ in $(seq 300); do
        curl --silent --fail "$url/health" > /dev/null && return
        sleep 0.2
    done
    cat "$folder/server.log"
    exit 1
}
stop() {
    kill -TERM "$server"
    wait "$server" || true
    server=
}
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
url=http://127.0.0.1:$port

echo "== schemathesis"
serve "$program" serve -m "$here/../../reference/tiny/llama.gguf" --listen "127.0.0.1:$port" --log off
"$bin/schemathesis" run "$url/openapi.json" --checks not_a_server_error --max-examples 40 --workers 2 --seed 1 \
    --request-timeout 60 --suppress-health-check all --no-shrink --warnings off
stop

"$bin/python" "$here/tokenizer.py" "$model" "$folder/tokenizer" 2> /dev/null
mkdir -p "$folder/tasks" "$folder/book"
for task in facts_choice facts_text; do
    sed "s|FACTS|$here/facts.jsonl|" "$here/$task.yaml" > "$folder/tasks/$task.yaml"
done
cat "$here"/../../../docs/*.md > "$folder/book/book.txt"

# Runs the judges of speed and quality on the server at $url.
judge() {
    tasks=$1
    name=$(curl --silent "$url/v1/models" | python3 -c 'import json, sys; print(json.load(sys.stdin)["data"][0]["id"])')
    model_args=model=$name,base_url=$url/v1/completions,tokenizer=$folder/tokenizer,num_concurrent=4,tokenized_requests=False
    "$bin/lm_eval" --model local-completions --model_args "$model_args" --tasks "$tasks" \
        --include_path "$folder/tasks" 2> "$folder/lm-eval.log" | grep '|'
    "$bin/llama-benchy" --base-url "$url/v1" --model "$name" --tokenizer "$folder/tokenizer" --pp 128 --tg 64 --exact-tg \
        --no-cache --concurrency 1 8 32 --runs 3 --book-url "$book/book.txt" --skip-coherence 2> "$folder/benchy.log" |
        grep '|'
}
python3 -m http.server --bind 127.0.0.1 --directory "$folder/book" 0 > "$folder/book.log" 2>&1 &
shelf=$!
sleep 1
book=http://127.0.0.1:$(sed -n 's/.*port \([0-9]*\).*/\1/p' "$folder/book.log" | head -1)
echo "== Lapwing: lm-eval and llama-benchy"
serve "$program" serve -m "$model" -t 2 --listen "127.0.0.1:$port" --log off
judge facts_choice,facts_text
stop
if [ -n "$peer" ]; then
    # It scores no prompts, so that it has only the task with texts.
    echo "== llama.cpp: lm-eval and llama-benchy"
    serve "$peer" -m "$model" -t 2 -np 32 -c 16384 --port "$port"
    judge facts_text
    stop
fi
