"""Predicts published gains of asynchronous over synchronous drafts with `lapwing speculate`, as JSON.

    python3 benches/published_drafts.py target/release/lapwing before > docs/predictions/speculation-before.json
    python3 benches/published_drafts.py target/release/lapwing after > docs/predictions/speculation-after.json
    python3 benches/published_drafts.py target/release/lapwing phone > docs/predictions/speculation-phone.json

`before` has the drafts of the engine. `after` has the published synchronous decoder (`--sync-bonus-pass`), and beside the engine's
asynchronous drafts those without a chosen length (`--post-verify`) and those for which the target does not wait, either
(`--pre-verify`). Acceptance and times are the published logs' (docs/speculation.md); no number is fitted.

`phone` predicts PowerServe's tokens per second with drafts on a Snapdragon 8 Gen 3, from the preset `sd8gen3`, and from PowerServe's speeds
without drafts, also on an 8 Elite. What a step does is what its program does: synchronous drafts on one processor, a pass of the target over
12 rows, and no further token where a path has a probability below 0.2. Which share of the tokens is accepted is not published, so there is
a prediction for each of several.
"""

import json
import math
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


# PowerServe's models, and the rows that its target verifies at once, of which one is no draft.
TARGET = "llama-3-8b"
DRAFT = "layers=16,dim=2048,ffn=8192,heads=32,kv-heads=8,head-dim=64,vocab=128256,tied=1"
VERIFIED = 12
# A path that is less likely gets no further token.
PATH_LEAST = 0.2
# From prose to the code of the logs above.
ACCEPTANCES = [0.6, 0.7, 0.8, 0.9, 0.95]


def simulated_ms(lapwing, figure, options):
    """A time of a run on the preset, in ms."""
    command = [lapwing, "simulate", "--json", "--soc", "sd8gen3"] + options
    run = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(run.stdout)[figure]


def of_preset(lapwing):
    """Passes of the target, of the draft model, and of the target over all rows, in ms. One row as on the GPU, as the preset's NPU has
    the bandwidth of single products; all rows as in a prompt on the NPU, with attention on the CPU."""
    step = ["--strategy", "gpu-only", "-p", "64", "-n", "8"]
    target, draft = (simulated_ms(lapwing, "decode_ms", ["-m", model] + step) / 8 for model in (TARGET, DRAFT))
    rows = ["--strategy", "chunk-graph", "--device", "cpu+npu", "--chunk", "32", "-p", str(VERIFIED), "-n", "0"]
    return target, draft, simulated_ms(lapwing, "prefill_ms", ["-m", TARGET] + rows)


def of_speeds(target, draft, prefill):
    """The same from published tokens per second without drafts, and of prompts: all rows read the weights once, or take their share of
    a prompt of as many rows as a tile of the NPU, whichever is longer."""
    return 1e3 / target, 1e3 / draft, max(1e3 / target, 32e3 / prefill)


def drafted(acceptance):
    """Drafted tokens of a path whose probability falls as the acceptance says."""
    return min(1 + int(math.log(PATH_LEAST) / math.log(acceptance)), VERIFIED - 1)


def on_a_phone(lapwing, name, times):
    target, draft, verify = times
    rows = []
    for acceptance in ACCEPTANCES:
        length = drafted(acceptance)
        growth = max(verify / target - 1, 0) / length
        options = ["--one-device", "--sync-bonus-pass", "--schedule", "sync", "--draft-length", str(length)]
        command = [lapwing, "speculate", "--json", "-n", "20000", "--growth", str(growth)]
        command += ["--acceptance", str(acceptance), "--draft-time", str(draft / target)]
        run = subprocess.run(command + options, check=True, capture_output=True, text=True)
        gain = json.loads(run.stdout)["runs"][0]["speed_up"]
        speed = round(1e3 / target * gain, 2)
        rows.append({"acceptance": acceptance, "drafted": length, "gain": round(gain, 4), "tokens_per_second": speed})
    times = {"target_ms": round(target, 2), "draft_ms": round(draft, 2), "verify_ms": round(verify, 2)}
    return {"times_of": name, **times, "predictions": rows}


def phone(lapwing):
    gen3, elite = of_speeds(12.03, 58.99, 468.35), of_speeds(12.48, 59.0, 509.09)
    named = [("sd8gen3", of_preset(lapwing)), ("Snapdragon 8 Gen 3, published", gen3), ("Snapdragon 8 Elite, published", elite)]
    return [on_a_phone(lapwing, name, times) for name, times in named]


def main():
    if sys.argv[2] == "phone":
        print(json.dumps(phone(sys.argv[1]), indent=2, ensure_ascii=False))
        return
    lapwing, form = sys.argv[1], FORMS[sys.argv[2]]
    rows = [predicted(lapwing, row, form) for row in ROWS]
    options = {"sync": form["sync"], "async": form["async"]}
    print(json.dumps({"options": options, "predictions": rows}, indent=2))


if __name__ == "__main__":
    main()
