#!/bin/sh
# Installs the clients of `run.sh`: Python packages in two environments, because openai is there in two major versions, and
# npm packages. What is there already, as listed here, is kept.
#
# usage: install.sh FOLDER
set -eu
[ $# -eq 1 ] || { sed -n '2,5p' "$0"; exit 2; }
mkdir -p "$1"
folder=$(cd "$1" && pwd)

install() {
    name=$1
    shift
    [ "$(cat "$folder/$name/done" 2>/dev/null)" = "$*" ] && return
    python3 -m venv "$folder/$name"
    "$folder/$name/bin/pip" install --quiet --no-compile --disable-pip-version-check "$@"
    echo "$*" > "$folder/$name/done"
}
install older 'openai>=1.109,<2'
install newer 'openai>=3.52,<4' 'ollama>=0.6.3,<0.7' 'anthropic>=2.14,<3' 'litellm>=1.109,<2' 'langchain-openai>=1.7,<2'
install events 'msgspec>=0.21,<1' 'pyzmq>=27,<28'
if [ ! -e "$folder/npm/done" ]; then
    mkdir -p "$folder/npm"
    echo '{"private":true,"type":"module"}' > "$folder/npm/package.json"
    (cd "$folder/npm" && npm install --silent --no-audit --no-fund openai@7 ollama@0.6 ai@7 @ai-sdk/openai-compatible@3 \
        @openai/agents zod playwright-core@1)
    touch "$folder/npm/done"
fi
