"""Lapwing's routing policies live beside Dynamo's router, and the same trace in virtual time.

    python routing.py WORKER FRONTEND LAPWING FOLDER
"""

import asyncio
import json
import pathlib
import random
import shutil
import subprocess
import sys

import load
import tiny_model
from fleet import Fleet
from report import Report, percentile

# The workers' processor is emulated: a row of a prompt takes 4 ms, and a token of an answer a little more.
DEVICE = "cpu=throttled:kind=cpu,gflops=0.1,gbps=1"
SIZES = tiny_model.Sizes(heads=1, kv_heads=1, forward=512)
WORKERS, KV_TOKENS, PARALLEL, CHUNK = 4, 16384, 4, 2048
# Frontend's router and workers' queue policy, and the names of both in virtual time.
POLICIES = [("preble", "preble"), ("d2lpm:quantum=2000", "dlpm:quantum=1000")]
# Requests of a client that sends more than the others, and those of each of the others.
REQUESTS, MORE, CLIENTS, PREFIXES, PREFIX, RATE = 240, 0.7, 4, 4, 512, 20.0
VOCABULARY = pathlib.Path(__file__).parents[2] / "tests/reference/tiny/llama.gguf"
# What live and virtual figures may differ by.
SHARE = 0.15


def ids(seed, count):
    """Random ids of tokens that are letters."""
    return random.Random(seed).choices(range(259, 288), k=count)


def trace():
    """Requests as a trace of `lapwing load` has them: a client sends most, and each client has prefixes of its own."""
    numbers, at, requests = random.Random(63), 0.0, []
    for _ in range(REQUESTS):
        at += numbers.expovariate(RATE)
        client = 0 if numbers.random() < MORE else numbers.randrange(1, CLIENTS)
        prefix = f"{client}.{numbers.randrange(PREFIXES)}"
        prompt = PREFIX + 16 * numbers.randrange(1, 5)
        output = numbers.randrange(16, 49)
        requests.append({"at": at, "client": str(client), "prompt_tokens": prompt, "output_tokens": output, "prefix": [[prefix, PREFIX]]})
    return requests


def bodies(requests):
    """The same requests for a frontend, as (seconds, client, body)."""
    for number, request in enumerate(requests):
        prefix, tokens = request["prefix"][0]
        own = ids(f"own {number}", request["prompt_tokens"] - tokens)
        body = {"prompt": ids(prefix, tokens) + own, "max_tokens": request["output_tokens"], "ignore_eos": True}
        yield request["at"], request["client"], body


def cluster(folder, programs, model, policies, workers=WORKERS):
    """A fleet with a router and workers of a queue policy."""
    (worker, frontend), (router, queue) = programs, policies
    fleet = Fleet(folder, worker)
    fleet.start_own_frontend(frontend, router)
    options = ["--device", DEVICE, "--policy", queue, "--ctx", str(KV_TOKENS), "--parallel", str(PARALLEL)]
    for _ in range(workers):
        fleet.start_worker(f"tiny={model}", *options, "--chunk", str(CHUNK), "--token-gap", "60s")
    fleet.ready(workers)
    return fleet


def measured(fleet):
    """Times of a worker alone in the form of `lapwing load --server`: of prompts, and of answers side by side."""

    def run(requests):
        return asyncio.run(load.replay(fleet.url, [(0.0, None, request) for request in requests]))

    costs = {}
    for length in (256, 512, 1024):
        costs[str(length)] = {}
        for tokens, batch in ((33, 1), (34, 2), (35, 4)):
            alone = ids(f"measured {length} {tokens}", length)
            body = {"prompt": alone, "max_tokens": tokens, "ignore_eos": True}
            prompt = run([body])[0].first_seconds
            answers = run([body] * batch)
            answer = sum(answer.seconds - answer.first_seconds for answer in answers) / batch
            costs[str(length)][str(tokens)] = [batch, prompt, answer / batch]
    return costs


def jain(values):
    """Jain's index: 1 if all are equal."""
    return sum(values) ** 2 / (len(values) * sum(value**2 for value in values))


def figures(requests, answers):
    """What is compared: latencies in ms, the share of prompts that was cached, and how even the service is until the first client is done."""
    clients = {request["client"] for request in requests}

    def of(client):
        return [(request, answer) for request, answer in zip(requests, answers, strict=True) if request["client"] == client]

    end = min(max(request["at"] + answer.seconds for request, answer in of(client)) for client in clients)

    def service(client):
        total = 0.0
        for request, answer in of(client):
            first, last = request["at"] + answer.first_seconds, request["at"] + answer.seconds
            if first <= end:
                share = 1.0 if last <= end else (end - first) / (last - first)
                total += request["prompt_tokens"] + 2 * (1 + share * (answer.generated_tokens - 1))
        return total

    times = [answer.seconds * 1e3 for answer in answers]
    return {
        "p50, ms": percentile(times, 0.5),
        "p99, ms": percentile(times, 0.99),
        "Jain's index": jain([service(client) for client in clients]),
        "hit rate": sum(answer.cached_tokens for answer in answers) / sum(answer.prompt_tokens for answer in answers),
    }


def virtual(lapwing, files, policies):
    """The same figures of the trace in virtual time."""
    trace, costs = files
    command = [lapwing, "load", str(trace), "--server", str(costs), "--workers", str(WORKERS), "--route", policies[0]]
    command += ["--policies", policies[1], "--kv-tokens", str(KV_TOKENS), "--max-running-requests", str(PARALLEL)]
    command += ["--chunk", str(CHUNK), "--json"]
    report = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["reports"][0]
    response = report["latencies"]["response_ms"]
    return {
        "p50, ms": response["p50"],
        "p99, ms": response["p99"],
        "Jain's index": report["jain_at_first_end"],
        "hit rate": report["hit_rate"],
    }


def check(report, programs, lapwing, folder):
    """Each policy and Dynamo's router live, and the policies in virtual time."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    model, files = folder / "routed.gguf", (folder / "trace.jsonl", folder / "costs.json")
    tiny_model.main(VOCABULARY, model, SIZES)
    requests = trace()
    files[0].write_text("".join(json.dumps(request) + "\n" for request in requests))
    with cluster(folder / "measured", programs, model, ("round-robin", "fcfs"), 1) as fleet:
        files[1].write_text(json.dumps(measured(fleet)))
    for policies in [("kv", "fcfs"), *POLICIES]:
        name = policies[0].split(":")[0]
        with cluster(folder / name, programs, model, policies) as fleet:
            answers = asyncio.run(load.replay(fleet.url, list(bodies(requests))))
        failed = [answer.error for answer in answers if answer.error]
        report.add(f"{name}: none of {len(answers)} failed", failed[:1] or "none", not failed)
        if failed:
            continue
        live = figures(requests, answers)
        told = virtual(lapwing, files, policies) if policies in POLICIES else {}
        for what, figure in live.items():
            if what not in told:
                report.note(f"{name}: {what}", f"{figure:.3f}")
                continue
            off = figure / told[what] - 1
            report.add(f"{name}: {what}, as in virtual time", f"{figure:.3f} live, {told[what]:.3f} virtual, {off:+.1%}", abs(off) <= SHARE)


def main(worker, frontend, lapwing, folder):
    report = Report()
    shutil.rmtree(folder, ignore_errors=True)
    check(report, (worker, frontend), lapwing, folder)
    print(report.table())
    if failed := report.failed():
        sys.exit(f"{len(failed)} of {len(report.rows)} do not hold: {'; '.join(failed)}")


if __name__ == "__main__":
    main(*sys.argv[1:])
