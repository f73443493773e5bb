"""Prefixes stay together, hit rates are those of one large cache, and what the cluster itself costs."""

import asyncio
import time

import load
from report import percentile

# Prompts in groups that share most of their tokens.
GROUPS, EACH, PREFIX, SUFFIX = 24, 10, 512, 32


def hit_rate(answers):
    return sum(answer.cached_tokens for answer in answers) / sum(answer.prompt_tokens for answer in answers)


def run(fleet, bodies, parallel, during=None):
    return asyncio.run(load.run(fleet.url, bodies, parallel, during))


def affinity(report, fleet):
    """One prompt goes to one worker, and different ones to all."""
    same = {"prompt": load.ids("same", 600), "max_tokens": 4}
    answers = run(fleet, [same] * 9, 1)
    first, later = answers[0], answers[1:]
    stay = sum(answer.worker == first.worker for answer in later)
    report.add("requests with the same prompt go to the worker that has it", f"{stay} of {len(later)}", stay == len(later))
    cached = min(answer.cached_tokens for answer in later)
    report.add("and compute only its end", f"{cached} of {first.prompt_tokens} tokens cached", cached >= 576)
    others = [{"prompt": load.ids(f"other {n}", 600), "max_tokens": 4} for n in range(32)]
    workers = {answer.worker for answer in run(fleet, others, 8)}
    report.add("different prompts are divided among all workers", len(workers), len(workers) == len(fleet.workers))


def compare(report, cluster, one):
    """The hit rate of a trace on a cluster, and on one worker."""
    bodies = load.trace(GROUPS, EACH, PREFIX, SUFFIX, 8)
    rates, times = [], []
    for fleet in (one, cluster):
        begin = time.monotonic()
        answers = run(fleet, bodies, 4)
        times.append(time.monotonic() - begin)
        failed = [answer.error for answer in answers if answer.error]
        report.add(f"{len(bodies)} requests on {len(fleet.workers)} workers", failed[:1] or "none failed", not failed)
        rates.append(hit_rate(answers))
    report.note("hit rate of one engine with one cache", f"{rates[0]:.3f} in {times[0]:.1f} s")
    share = rates[1] / rates[0]
    report.add("hit rate of the cluster, at least 0.95 of that", f"{rates[1]:.3f}, {share:.3f} of it, in {times[1]:.1f} s", share >= 0.95)


def cost(report, fleet):
    """What a request costs beside the engine: a short prompt, one token."""
    # In a stream, some clients get the first event 40 ms later: the frontend lets the system collect small packets.
    whole = {"max_tokens": 1, "ignore_eos": True, "stream": False, "stream_options": None}
    bodies = [{"prompt": load.ids(f"cost {n}", 24)} | whole for n in range(400)]
    run(fleet, bodies[:50], 1)
    before = fleet.frontend.cpu_seconds()
    answers = run(fleet, bodies, 1)
    cpu = (fleet.frontend.cpu_seconds() - before) / len(bodies) * 1e3
    times = [answer.seconds * 1e3 for answer in answers]
    half = percentile(times, 0.5)
    report.add("time of a request of one token, all in all, at most 10 ms", f"p50 {half:.1f} ms, p99 {percentile(times, 0.99):.1f} ms", half <= 10)
    report.note("of which the frontend computes", f"{cpu:.1f} ms; it takes {fleet.frontend.megabytes():.0f} MB")
