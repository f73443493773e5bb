"""Runs everything that docs/cluster.md claims on this machine, and prints what holds.

    python run.py WORKER FRONTEND LAPWING FOLDER MODEL.gguf TINY.gguf
"""

import contextlib
import pathlib
import shutil
import sys

import caches
import clients
import failures
import routing
from fleet import Fleet
from report import Report


def fleet_of(folder, program, model, workers, *options, discovery="file"):
    """A cluster that answers."""
    with contextlib.ExitStack() as stack:
        fleet = stack.enter_context(Fleet(folder, program, discovery))
        fleet.start_frontend()
        for _ in range(workers):
            fleet.start_worker(model, *options)
        fleet.ready(workers)
        stack.pop_all()
    return fleet


def policy_fleet(folder, programs, model, workers, *options):
    """A cluster with the frontend of this repository, that answers."""
    worker, frontend = programs
    with contextlib.ExitStack() as stack:
        fleet = stack.enter_context(Fleet(folder, worker))
        fleet.start_own_frontend(frontend, "d2lpm")
        for _ in range(workers):
            fleet.start_worker(model, *options)
        fleet.ready(workers)
        stack.pop_all()
    return fleet


def main(program, frontend, lapwing, folder, model, tiny):
    report, folder = Report(), pathlib.Path(folder)
    shutil.rmtree(folder, ignore_errors=True)
    chat, tiny = f"chat={model}", f"tiny={tiny}"

    for discovery in ("file", "etcd"):
        report.step(f"clients, four workers, discovery by {discovery}")
        with fleet_of(folder / f"clients-{discovery}", program, chat, 4, discovery=discovery) as fleet:
            clients.check(report, fleet, "chat")

    report.step("prefixes and costs")
    with fleet_of(folder / "caches", program, tiny, 4) as fleet:
        caches.cost(report, fleet)
        caches.affinity(report, fleet)
    # The caches of four workers hold as many tokens as that of the one.
    with fleet_of(folder / "cluster", program, tiny, 4, "--ctx", "4096") as cluster:
        with fleet_of(folder / "one", program, tiny, 1, "--ctx", "16384") as one:
            caches.compare(report, cluster, one)

    report.step("workers that end and join")
    with fleet_of(folder / "failures", program, tiny, 4) as fleet:
        expected, answers = failures.texts(fleet)
        failed = [answer.error for answer in answers if answer.error]
        report.add("undisturbed: none of 1000 failed", failed[:1] or "none", not failed)
        failures.killed(report, fleet, expected)
        failures.ended(report, fleet, expected)
        failures.joined(report, fleet, expected, lambda: fleet.start_worker(tiny))
        failures.slow(report, fleet, expected)

    report.step("readers and frontends")
    with fleet_of(folder / "frontend", program, tiny, 2) as fleet:
        failures.unread(report, fleet)

        def restart():
            fleet.start_frontend()
            fleet.ready(2)

        failures.restarted(report, fleet, restart)
    report.step("a full queue")
    with fleet_of(folder / "full", program, tiny, 2, "--requests", "4", "--parallel", "1") as fleet:
        failures.full(report, fleet)

    report.step("the frontend with policies: clients, workers that are lost, end and join, and a full queue")
    programs = (program, frontend)
    with policy_fleet(folder / "clients-policy", programs, chat, 1) as fleet:
        clients.check(report, fleet, "chat")
    with policy_fleet(folder / "failures-policy", programs, tiny, 4) as fleet:
        expected, _ = failures.texts(fleet)
        failures.killed(report, fleet, expected)
        failures.ended(report, fleet, expected)
        failures.joined(report, fleet, expected, lambda: fleet.start_worker(tiny))
    with policy_fleet(folder / "full-policy", programs, tiny, 2, "--requests", "4", "--parallel", "1") as fleet:
        failures.full(report, fleet)
    report.step("routing policies, live and in virtual time")
    routing.check(report, programs, lapwing, folder / "routing")

    report.step("all")
    print(report.table())
    if failed := report.failed():
        sys.exit(f"{len(failed)} of {len(report.rows)} do not hold: {'; '.join(failed)}")


if __name__ == "__main__":
    main(*sys.argv[1:])
