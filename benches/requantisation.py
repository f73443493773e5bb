#!/usr/bin/env python3
"""Measures forms of requantised weights and of int8 activations: perplexity, prefill and decode speed.

usage: requantisation.py LAPWING MODEL TEXTFILE [--forms FORM,...] [--activations SCALES,...] [--ctx N]
                         [--tokens N] [--rounds N] [--args 'OPTION...']

LAPWING is the program and MODEL a file of more bits per weight than the forms, as F16. A form is a value of
--requant, or `stored`, which is measured with the first of SCALES only. Speeds are medians over rounds; each
round measures every combination once, so that a change of the machine's speed meets all of them. Prints a
table; bits per weight are those of the blocks in memory.
"""

import argparse
import json
import shlex
import statistics
import subprocess

FORMS = "stored,q8_0,int8:row,q4_1,int4:192:min,int4:row:min,q4_0,int4:192,int4:row"
BITS = {"q8_0": 8.5, "q4_1": 5, "q4_0": 4.5, "int8": 8.5, "int4": 4.5}


def lapwing(args, command, form, activations, more):
    requant = [] if form == "stored" else ["--requant", form]
    line = [args.program, command, "-m", args.model, "--json", "--activations", activations]
    line += requant + shlex.split(args.args) + more
    return json.loads(subprocess.run(line, check=True, capture_output=True, text=True).stdout)


def bits(form):
    name = form.split(":")[0]
    return "" if form == "stored" else str(BITS["q4_1" if form.endswith(":min") else name])


def speeds(args, form, activations):
    tokens = str(args.tokens)
    report = lapwing(args, "bench", form, activations, ["-p", tokens, "-n", "32", "-r", "1"])
    rates = [entry["tokens_per_second"]["median"] for entry in report["results"]]
    return rates[0], rates[1]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("model")
    parser.add_argument("text")
    parser.add_argument("--forms", default=FORMS)
    parser.add_argument("--activations", default="block,row,row-min")
    parser.add_argument("--ctx", type=int, default=512)
    parser.add_argument("--tokens", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--args", default="")
    args = parser.parse_args()
    all_scales = args.activations.split(",")
    scales_of = {form: all_scales if form != "stored" else all_scales[:1] for form in args.forms.split(",")}
    pairs = [(form, scales) for form, of_form in scales_of.items() for scales in of_form]
    # The first run of a form packs its weights, which the others read.
    loss = {
        pair: lapwing(args, "perplexity", *pair, ["-c", str(args.ctx), args.text])["perplexity"] for pair in pairs
    }
    rounds = [{pair: speeds(args, *pair) for pair in pairs} for _ in range(args.rounds)]
    print("| form | activations | bits per weight | perplexity | prefill, tok/s | decode, tok/s |")
    print("|---|---|---|---|---|---|")
    for pair in pairs:
        prefill, decode = (statistics.median(column) for column in zip(*(one[pair] for one in rounds)))
        form, scales = pair
        print(f"| `{form}` | {scales} | {bits(form)} | {loss[pair]:.3f} | {prefill:.0f} | {decode:.1f} |")


main()
