#!/bin/sh
# Tests the timeline page in headless Chromium. Needs Rust, Node 20 with npm, and, if there is no
# Chromium ($CHROMIUM or /usr/bin/chromium), apt. Pages and screenshots are kept in
# target/timeline-page.
# $EXAMPLES is a folder with built examples; if it is unset, they are built here.
set -eu
cd "$(dirname "$0")"
here=$PWD
cd ../../..
out=${CARGO_TARGET_DIR:-$PWD/target}/timeline-page
mkdir -p "$out"

CHROMIUM=${CHROMIUM:-/usr/bin/chromium}
export CHROMIUM
if [ ! -x "$CHROMIUM" ]; then
    sh tests/apt.sh chromium
fi
(cd "$here" && npm ci --no-audit --no-fund --loglevel=error)
bin=$here/node_modules/.bin

page=traces/src/html
"$bin/prettier" --config "$here/.prettierrc.json" --check \
    "$page"/page/*.js "$page"/page/*.css "$here"/*.mjs "$here"/*.json
"$bin/prettier" --config "$here/.prettierrc.json" --embedded-language-formatting=off --check \
    "$page/page.html" "$page/overview.html"
"$bin/tsc" -p "$here"

make() {
    if [ -n "${EXAMPLES:-}" ]; then
        "$EXAMPLES/synthetic" "$@"
    else
        cargo run --quiet -p lapwing-traces --example synthetic -- "$@"
    fi
}
make 100000 "$out/page.html" >"$out/facts.json"
make 5000 "$out/two.html" --two >"$out/two.json"
make 0 "$out/empty.html" >"$out/empty.json"
make 2000 "$out/hostile.html" --hostile >"$out/hostile.json"
make 4000 "$out/many.html" --many
make 400 "$out/many-hostile.html" --many --hostile
PAGES=$out node --test --test-reporter=spec "$here/page.test.mjs"
