#!/usr/bin/env python3
"""Compares the predictions of `lapwing inspect --fit` with the medians of `lapwing bench`.

usage: fit.py LAPWING MODEL... [--device DEVICES] [--runs N] [--predictions N] [--tokens N] [--depth N]
              [--bound SHARE] [--repeat SHARE] [--args 'OPTION...']

LAPWING is the program; MODEL is a GGUF file, or a name whose model was fetched. Of each model, the prediction is made N
times and the speeds are measured in N runs: a prompt of 512 tokens, decode with an empty context, and decode after DEPTH tokens.
Some of the runs follow each prediction. The ratio is the median of those of each prediction to the median of these runs, so that slow
changes of the machine reach both sides. A spread is the range of values divided by their median. Run it on an idle machine.

Prints a table. Fails (exit code 1) if a ratio is off by more than the bound, or if the predictions of a model differ by more than
`--repeat`, or if a model cannot be predicted or measured.
"""

import argparse
import json
import shlex
import statistics
import subprocess
import sys

PROMPT = 512


def lapwing(args, command, more):
    line = [args.program, *command, "--json", *more, *shlex.split(args.args)]
    if args.device:
        line += ["--device", args.device]
    done = subprocess.run(line, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{shlex.join(line)}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def predicted(args, model):
    """Tokens per second: of the prompt, of decode, and of decode at the depth."""
    report = lapwing(args, ["inspect", "--fit", model], ["-c", str(args.depth + 1)])
    if not report["supported"]:
        raise RuntimeError(report["verdict"])
    one = report["devices"][0]
    if one["error"]:
        raise RuntimeError(one["error"])
    prompt = one["prompt_tokens"] / one["first_token_ms"] * 1e3
    return one["prompt_tokens"], prompt, one["tokens_per_second"], one["tokens_per_second_at_context"]


def measured(args, model, prompt, count):
    """The same, of each of so many runs."""
    runs = ["-m", model, "-r", str(count)]
    tokens = str(args.tokens)
    both = lapwing(args, ["bench"], [*runs, "-p", str(prompt), "-n", tokens])["results"]
    deep = lapwing(args, ["bench"], [*runs, "-p", "0", "-n", tokens, "-d", str(args.depth - args.tokens // 2)])["results"]
    return [result["tokens_per_second"]["all"] for result in both + deep]


def spread(values):
    return (max(values) - min(values)) / statistics.median(values)


def compare(args, model):
    """Rows of the table, and what is wrong."""
    if args.depth < PROMPT:
        raise RuntimeError(f"--depth must be at least {PROMPT}")
    if args.runs < args.predictions:
        raise RuntimeError("--runs must be at least --predictions")
    predictions, runs = [], []
    for number in range(args.predictions):
        predictions.append(predicted(args, model))
        count = args.runs * (number + 1) // args.predictions - args.runs * number // args.predictions
        runs.append(measured(args, model, predictions[0][0], count))
    prompt = predictions[0][0]
    rows, wrong = [], []
    tests = [f"pp{prompt}", f"tg{args.tokens}", f"tg{args.tokens}@d{args.depth}"]
    for at, test in enumerate(tests):
        fit = [prediction[at + 1] for prediction in predictions]
        true = [speed for some in runs for speed in some[at]]
        ratio = statistics.median(one / statistics.median(some[at]) for one, some in zip(fit, runs))
        rows.append((model, test, statistics.median(fit), statistics.median(true), ratio, spread(fit), spread(true)))
        if abs(ratio - 1) > args.bound:
            wrong.append(f"{model}, {test}: ratio {ratio:.2f}, predicted {fit}, measured {true}")
        if spread(fit) > args.repeat:
            wrong.append(f"{model}, {test}: predictions differ by {100 * spread(fit):.1f} %: {fit}")
    return rows, wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("models", nargs="+")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--predictions", type=int, default=3)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--depth", type=int, default=1024)
    parser.add_argument("--bound", type=float, default=0.15)
    parser.add_argument("--repeat", type=float, default=0.05)
    parser.add_argument("--args", default="")
    args = parser.parse_args()
    wrong = []
    print("| model | test | predicted, tok/s | measured, tok/s | ratio | spread of predictions | spread of runs |")
    print("|---|---|---|---|---|---|---|")
    for model in args.models:
        try:
            rows, of_model = compare(args, model)
        except (RuntimeError, OSError) as error:
            rows, of_model = [], [f"{model}: {error}"]
        wrong += of_model
        for name, test, middle, true, ratio, of_predictions, of_runs in rows:
            spreads = f"{100 * of_predictions:.1f} % | {100 * of_runs:.1f} %"
            print(f"| {name} | {test} | {middle:.1f} | {true:.1f} | {ratio:.2f} | {spreads} |", flush=True)
    for line in wrong:
        print(line, file=sys.stderr)
    sys.exit(1 if wrong else 0)


main()
