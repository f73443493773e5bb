#!/bin/sh
# Makes the pictures of README and docs from real runs on emulated devices of this machine.
# Needs Rust and Chromium ($CHROMIUM or /usr/bin/chromium); fetches the default model. Takes about three
# minutes. Run nothing else meanwhile: a late device makes a picture of a disturbed run.
set -eu
cd "$(dirname "$0")/../.."
CHROMIUM=${CHROMIUM:-/usr/bin/chromium}
out=${CARGO_TARGET_DIR:-$PWD/target}/pictures
mkdir -p "$out"
cargo build --release --quiet
lapwing=${CARGO_TARGET_DIR:-$PWD/target}/release/lapwing

picture() { # page, width,height, picture
    "$CHROMIUM" --headless=new --no-sandbox --disable-gpu --hide-scrollbars --force-device-scale-factor=1 \
        --virtual-time-budget=5000 --window-size="$2" --screenshot="$3" "file://$1" 2>/dev/null
}

prompt=$(yes 'Gravity keeps the planets on their ways.' | head -n 24 | tr '\n' ' ')
"$lapwing" run --device phone --strategy tensor-level --temp 0 -n 12 --trace "$out/run.lwt" \
    "$prompt What is gravity?" >/dev/null
"$lapwing" timeline "$out/run.lwt" --html "$out/timeline.html" --csv "$out/timeline" >/dev/null
# The view from the first op to the last: the preparation of graphs before it takes longer than the prompt.
view=$(awk -F , 'NR > 1 && (!zero || $10 < zero) { zero = $10 }
    $4 ~ /^[cgn]pu$/ && (!from || $10 < from) { from = $10 }
    $4 ~ /^[cgn]pu$/ && $11 > to { to = $11 }
    END { printf "t=%.0f..%.0f", from - zero, to - zero }' "$out/timeline/spans.csv")
picture "$out/timeline.html#$view" 1600,900 docs/images/timeline.png

"$lapwing" bench --device phone --strategy all -p 135 --html "$out/strategies.html" >/dev/null
picture "$out/strategies.html" 1600,1100 docs/images/strategies.png
"$lapwing" speculate --acceptance 0.4,0.5,0.6,0.7,0.8,0.9 --draft-time 0.1,0.3,0.6 --plot docs/images/speculation.svg >/dev/null
tenths=0.05,0.15,0.25,0.35,0.45,0.55,0.65,0.75,0.85,0.95
"$lapwing" speculate --acceptance "$tenths" --draft-time "$tenths" -n 20000 --region docs/images/asynchronous.svg \
    --mark AMUSD=0.952,0.439 >/dev/null
# Chunks of a prompt whose experts are on the CPU and whose attention is on the GPU, in virtual time.
"$lapwing" simulate --device cpu+gpu --model qwen3-30b-a3b --strategy auto-place -p 2048 --chunk 512 --permits 4 -n 0 \
    --trace "$out/phone.lwt" >/dev/null
"$lapwing" timeline "$out/phone.lwt" --html "$out/phone.html" >/dev/null
picture "$out/phone.html#t=0..1000000000" 1600,470 docs/images/experts.png
# Two streams and, a second later, two prompts, in virtual time: each chunk on the route that is the fastest for it alone, and on routes by
# the moment. Both pictures have the same length of time.
for moment in off class; do
    "$lapwing" simulate --soc phone -m smollm2 --strategy auto --moment $moment --requests 2x30+150,2x1000+1@1s \
        --trace "$out/$moment.lwt" >/dev/null
    "$lapwing" timeline "$out/$moment.lwt" --html "$out/$moment.html" >/dev/null
    picture "$out/$moment.html#t=0..21000000000" 1600,470 docs/images/moment_$moment.png
done
# The pictures of the API documentation are in its pages.
embedded() { # label, type, picture
    printf '[%s]: data:%s;base64,%s\n' "$1" "$2" "$(base64 -w0 "docs/$3")"
}
embedded docs/images/timeline.png image/png images/timeline.png > src/guide/pictures/timeline.md
embedded images/experts.png image/png images/experts.png > src/guide/pictures/experts.md
for moment in off class; do
    embedded "images/moment_$moment.png" image/png images/moment_$moment.png
done > src/guide/pictures/overlap.md
for name in speculation asynchronous; do
    embedded "images/$name.svg" image/svg+xml "images/$name.svg"
done > src/guide/pictures/speculation.md
ls -l docs/images/*.png docs/images/*.svg
