"""Processes of a cluster on this machine: etcd, Dynamo's frontend, and workers."""

import json
import os
import pathlib
import random
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request


def free_port():
    """A free port below 32768: Dynamo takes no other for its status."""
    while True:
        port = random.randrange(20000, 32768)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue


def get(url, timeout=5):
    """The body of an address, or none while nobody answers."""
    try:
        with urllib.request.urlopen(url, timeout=timeout) as answer:
            return answer.read().decode()
    except (urllib.error.URLError, OSError):
        return None


def wait_for(what, condition, seconds=60):
    """Waits until a condition yields something true, which it returns."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if found := condition():
            return found
        time.sleep(0.1)
    raise TimeoutError(f"{what}: not within {seconds} s")


class Process:
    """A process whose output goes to a file."""

    def __init__(self, folder, name, command, environment):
        self.name = name
        self.log = folder / f"{name}.log"
        with open(self.log, "ab") as log:
            self.popen = subprocess.Popen(command, env=environment, stdout=log, stderr=log)

    def send(self, number):
        self.popen.send_signal(number)

    def end(self, seconds=30):
        """Ends it, and returns its exit code."""
        if self.popen.poll() is None:
            self.send(signal.SIGTERM)
            try:
                self.popen.wait(seconds)
            except subprocess.TimeoutExpired:
                self.popen.kill()
        return self.popen.wait()

    def cpu_seconds(self):
        """Time of all cores that it has used."""
        fields = pathlib.Path(f"/proc/{self.popen.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def megabytes(self):
        """Memory that it has at present."""
        pages = int(pathlib.Path(f"/proc/{self.popen.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


class Worker(Process):
    """A worker, whose metrics can be read."""

    def __init__(self, folder, name, command, environment):
        self.port = free_port()
        super().__init__(folder, name, command, environment | {"DYN_SYSTEM_PORT": str(self.port)})

    def metric(self, name):
        """The number of a metric, or none if it does not have it."""
        lines = (get(f"http://127.0.0.1:{self.port}/metrics") or "").splitlines()
        found = [line for line in lines if line.split("{")[0].split(" ")[0] == name]
        return float(found[0].rsplit(" ", 1)[1]) if found else None


class Fleet:
    """A frontend and workers that find each other by files or by etcd."""

    def __init__(self, folder, program, discovery="file"):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.program = program
        self.environment = os.environ | {
            "DYN_DISCOVERY_BACKEND": discovery,
            "DYN_FILE_KV": str(self.folder / "discovery"),
            "DYN_TCP_RPC_HOST": "127.0.0.1",
            "DYN_TCP_RESPONSE_STREAM_HOST": "127.0.0.1",
            "DYN_EVENT_PLANE_HOST": "127.0.0.1",
            "DYN_GRACEFUL_SHUTDOWN_GRACE_PERIOD_SECS": "1",
            "DYN_WORKER_GRACEFUL_SHUTDOWN_TIMEOUT": "20",
            "DYN_LOG": os.environ.get("DYN_LOG", "info"),
        }
        self.processes = []
        self.workers = []
        self.frontend = None
        self.port = free_port()
        if discovery == "etcd":
            self.start_etcd()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in reversed(self.processes):
            process.send(signal.SIGCONT) if process.popen.poll() is None else None
            process.popen.kill()
            process.popen.wait()

    def start(self, kind, name, command, environment=None):
        process = kind(self.folder, name, command, environment or self.environment)
        self.processes.append(process)
        return process

    def start_etcd(self):
        client, peer = (f"http://127.0.0.1:{free_port()}" for _ in range(2))
        addresses = [f"--listen-client-urls={client}", f"--advertise-client-urls={client}"]
        addresses += [f"--listen-peer-urls={peer}", f"--initial-advertise-peer-urls={peer}"]
        addresses += [f"--initial-cluster=default={peer}", f"--data-dir={self.folder / 'etcd'}"]
        self.start(Process, "etcd", ["etcd", *addresses])
        self.environment["ETCD_ENDPOINTS"] = client
        wait_for("etcd", lambda: get(f"{client}/health"))

    def start_worker(self, model, *options):
        name = f"worker-{len(self.workers)}"
        worker = self.start(Worker, name, [self.program, "-m", model, "--threads", "1", *options])
        self.workers.append(worker)
        return worker

    def start_frontend(self, *options):
        command = [sys.executable, "-m", "dynamo.frontend", "--http-host", "127.0.0.1"]
        command += ["--http-port", str(self.port), "--router-mode", "kv"]
        command += ["--kv-cache-block-size", "16", "--migration-limit", "3"]
        # Requests may follow each other faster than events do, and a block of a prompt costs more than one of a running request.
        command += ["--router-predicted-ttl-secs", "5", "--router-prefill-load-scale", "4", *options]
        self.frontend = self.start(Process, "frontend", command)
        return self.frontend

    def start_own_frontend(self, program, router, *options):
        """Starts the frontend of this repository instead of Dynamo's."""
        command = [program, "--http-port", str(self.port), "--router", router, *options]
        self.frontend = self.start(Process, "frontend", command)
        return self.frontend

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def instances(self):
        """Ids of the workers that the frontend knows."""
        health = json.loads(get(f"{self.url}/health") or "{}")
        found = [one for one in health.get("instances", []) if one.get("endpoint") == "generate"]
        return sorted(one["instance_id"] for one in found)

    def ready(self, workers, seconds=120):
        """Waits until the frontend knows so many workers and their model."""

        def is_ready():
            ended = [process for process in self.processes if process.popen.poll() is not None]
            if ended and ended[0].popen.returncode not in (0, -signal.SIGKILL):
                raise RuntimeError(f"{ended[0].name} has ended; see {ended[0].log}")
            models = json.loads(get(f"{self.url}/v1/models") or "{}").get("data")
            return models and len(self.instances()) == workers

        wait_for(f"{workers} workers", is_ready, seconds)

    def frontend_metric(self, name):
        """The sum of a metric of the frontend over its labels."""
        lines = (get(f"{self.url}/metrics") or "").splitlines()
        found = [line for line in lines if line.split("{")[0].split(" ")[0] == name]
        return sum(float(line.rsplit(" ", 1)[1]) for line in found)
