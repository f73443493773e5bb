"""What several workers give in virtual time under each routing policy: docs/predictions/workers.json.

usage: python3 benches/predict_workers.py target/release/lapwing docs/predictions/workers.json

Rates are the published ones: each worker has a copy of an experiment's arrivals (`dlpm`: half of one). The results do not depend on the
machine.
"""

import json
import subprocess
import sys

EXPERIMENTS = ["toolbench", "embodied", "programming", "video", "loogle", "mixed"]
ROUTES = ["round-robin", "least-load", "power-of-two", "cache-aware", "preble", "d2lpm", "min-makespan"]
# Queue policy of the workers, if it is not first come, first served.
POLICIES = {"preble": "preble", "d2lpm": "dlpm:quantum=50000"}


def load(lapwing, experiment, copies, workers, route):
    command = [lapwing, "load", "--experiment", experiment, "--copies", str(copies), "--workers", str(workers)]
    command += ["--route", route, "--policies", POLICIES.get(route, "fcfs"), "--json"]
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)["reports"][0]


def short(report):
    def times(what):
        found = report["latencies"][what]
        return {key: found[key] and round(found[key], 1) for key in ("mean", "p50", "p99")}

    return {
        "route": report["route"],
        "policy": report["policy"],
        "finished": report["finished"],
        "tokens_per_second": round(report["tokens_per_second"], 1),
        "hit_rate": round(report["hit_rate"], 4),
        "ttft_ms": times("ttft_ms"),
        "response_ms": times("response_ms"),
        "jain_index": round(report["jain_index"], 4),
        "imbalance": round(report["imbalance"]["busy"], 3),
        "busy_share": round(sum(worker["busy_share"] for worker in report["workers"]) / len(report["workers"]), 3),
    }


def main(lapwing, path):
    runs = []
    for experiment in [f"preble-{name}" for name in EXPERIMENTS] + ["dlpm"]:
        for_two = 1 if experiment == "dlpm" else 2
        for workers in (2, 4):
            copies = for_two * workers // 2
            reports = [short(load(lapwing, experiment, copies, workers, route)) for route in ROUTES]
            runs.append({"experiment": experiment, "copies": copies, "workers": workers, "reports": reports})
            with open(path, "w") as file:
                json.dump({"runs": runs}, file, indent=1)
                file.write("\n")


main(sys.argv[1], sys.argv[2])
