"""Predicts published gains of asynchronous over synchronous drafts with `lapwing speculate`, as JSON.

    python3 benches/published_drafts.py target/release/lapwing before > docs/predictions/speculation-before.json
    python3 benches/published_drafts.py target/release/lapwing after > docs/predictions/speculation-after.json

`before` has the drafts of the engine. `after` has the published synchronous decoder (`--sync-bonus-pass`), and beside the engine's
asynchronous drafts those without a chosen length (`--post-verify`) and those for which the target does not wait, either
(`--pre-verify`). Acceptance and times are the published logs' (docs/speculation.md); no number is fitted.
"""

import json
import subprocess
import sys

# Name, acceptance, ms of a pass of the draft model and of the target, drafted tokens of the synchronous decoder.
ROWS = [
    ("AMUSD, HumanEval, 1B and 8B", 0.952, 11.69, 26.63, 5),
    ("AMUSD, RefactorChat, 1B and 8B", 0.962, 11.74, 31.19, 5),
    ("PipeSpec, HumanEval, 1B and 8B, 5 tokens", 0.931, 11.07, 26.11, 5),
    ("PipeSpec, HumanEval, 1B and 8B, 7 tokens", 0.933, 11.2, 26.7, 7),
    ("PipeSpec, HumanEval, 8B and 70B", 0.946, 22.6, 420.0, 7),
    ("PipeSpec, HumanEval, 1B and 70B", 0.928, 11.6, 414.0, 7),
]

FORMS = {
    "before": {"sync": [], "async": {"async": []}},
    "after": {
        "sync": ["--sync-bonus-pass"],
        "async": {
            "async": [],
            "post_verify": ["--post-verify"],
            "pre_and_post_verify": ["--pre-verify", "--post-verify"],
        },
    },
}


def speed_up(lapwing, row, options):
    _, acceptance, draft, target, _ = row
    command = [lapwing, "speculate", "--json", "--growth", "0", "-n", "20000"]
    command += ["--acceptance", str(acceptance), "--draft-time", str(draft / target)] + options
    run = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(run.stdout)["runs"][0]["speed_up"]


def predicted(lapwing, row, form):
    sync = ["--schedule", "sync", "--draft-length", str(row[4])] + form["sync"]
    sync = speed_up(lapwing, row, sync)
    ahead = {
        name: speed_up(lapwing, row, ["--schedule", "async"] + options)
        for name, options in form["async"].items()
    }
    return {
        "published": row[0],
        "acceptance": row[1],
        "draft_ms": row[2],
        "target_ms": row[3],
        "drafted": row[4],
        "speed_up_sync": round(sync, 4),
        "gain": {name: round(speed / sync, 4) for name, speed in ahead.items()},
    }


def main():
    lapwing, form = sys.argv[1], FORMS[sys.argv[2]]
    rows = [predicted(lapwing, row, form) for row in ROWS]
    options = {"sync": form["sync"], "async": form["async"]}
    print(json.dumps({"options": options, "predictions": rows}, indent=2))


if __name__ == "__main__":
    main()
