"""What fails how: workers that are killed, end, join or are slow, a frontend that restarts, readers that do not read."""

import asyncio
import signal
import socket
import threading
import time

import load
from report import percentile

REQUESTS, PARALLEL, TOKENS = 1000, 24, 48


def bodies(count=REQUESTS, tokens=TOKENS):
    return [{"prompt": load.ids(f"request {n}", 64), "max_tokens": tokens, "ignore_eos": True} for n in range(count)]


def texts(fleet):
    """The answers of an undisturbed run."""
    answers = asyncio.run(load.run(fleet.url, bodies(), PARALLEL))
    return [answer.text or answer.error for answer in answers], answers


def judged(report, what, answers, expected):
    """Notes how many failed, and how many have the text of the undisturbed run."""
    failed = [answer.error for answer in answers if answer.error]
    report.add(f"{what}: none of {len(answers)} failed", failed[:1] or "none", not failed)
    same = sum(answer.text == text for answer, text in zip(answers, expected, strict=True))
    report.add(f"{what}: texts of an undisturbed run", f"{same} of {len(answers)}", same == len(answers))
    times = [answer.seconds for answer in answers]
    report.note(f"{what}: time of a request", f"p50 {percentile(times, 0.5):.2f} s, p99 {percentile(times, 0.99):.2f} s")


def at(number, action):
    """Calls `action` once, when so many requests have ended."""
    is_done = False

    async def during(ended):
        nonlocal is_done
        if ended >= number and not is_done:
            is_done = True
            await asyncio.to_thread(action)

    return during


def busy_signal(worker, number):
    """Sends a signal to a worker in the middle of answers."""

    def action():
        for _ in range(200):
            if (worker.metric("vllm:num_requests_running") or 0) >= 2:
                break
            time.sleep(0.02)
        worker.send(number)

    return action


def killed(report, fleet, expected):
    migrations = "dynamo_frontend_model_migration_total"
    before = fleet.frontend_metric(migrations)
    action = busy_signal(fleet.workers[0], signal.SIGKILL)
    answers = asyncio.run(load.run(fleet.url, bodies(), PARALLEL, at(REQUESTS // 4, action)))
    judged(report, "a worker killed in mid-answer", answers, expected)
    moved = fleet.frontend_metric(migrations) - before
    report.add("a worker killed in mid-answer: answers that went on elsewhere", int(moved), moved > 0)


def ended(report, fleet, expected):
    worker = fleet.workers[1]
    answers = asyncio.run(load.run(fleet.url, bodies(), PARALLEL, at(REQUESTS // 4, busy_signal(worker, signal.SIGTERM))))
    judged(report, "a worker that gets SIGTERM", answers, expected)
    code = worker.popen.wait(30)
    report.add("a worker that gets SIGTERM: its exit code", code, code == 0)


def joined(report, fleet, expected, start):
    answers = asyncio.run(load.run(fleet.url, bodies(), PARALLEL, at(REQUESTS // 10, start)))
    judged(report, "a worker that joins", answers, expected)
    workers = {answer.worker for answer in answers}
    report.add("a worker that joins: workers that answered", len(workers), len(workers) == len(fleet.instances()))


def slow(report, fleet, expected):
    """One worker runs for a tenth of the time."""
    worker, stop = fleet.workers[-1], threading.Event()

    def throttle():
        while not stop.is_set():
            worker.send(signal.SIGSTOP)
            time.sleep(0.045)
            worker.send(signal.SIGCONT)
            time.sleep(0.005)

    thread = threading.Thread(target=throttle)
    thread.start()
    try:
        answers = asyncio.run(load.run(fleet.url, bodies(), PARALLEL))
    finally:
        stop.set()
        thread.join()
    judged(report, "a worker ten times slower", answers, expected)
    workers = [answer.worker for answer in answers]
    least = min(workers.count(worker) for worker in set(workers))
    report.note("a worker ten times slower: requests of the worker with the fewest", least)


def restarted(report, fleet, restart):
    """The frontend is killed and started again while answers are streamed."""
    action = at(40, fleet.frontend.popen.kill)
    answers = asyncio.run(load.run(fleet.url, bodies(200), PARALLEL, action))
    errors = sorted({answer.error.split(":")[0] for answer in answers if answer.error})
    whole = sum(not answer.error for answer in answers)
    names = {"ClientPayloadError", "ClientOSError", "ClientConnectorError", "ServerDisconnectedError", "ClientConnectionResetError"}
    report.add("a frontend that is killed: only named errors", f"{whole} whole, {', '.join(errors)}", set(errors) <= names and bool(errors))
    restart()
    answers = asyncio.run(load.run(fleet.url, bodies(50), PARALLEL))
    failed = [answer.error for answer in answers if answer.error]
    report.add("a frontend that is started again answers", failed[:1] or "none of 50 failed", not failed)


def idle(fleet):
    return all((worker.metric("vllm:num_requests_running") or 0) == 0 for worker in fleet.workers if worker.popen.poll() is None)


def until_idle(fleet, seconds=20):
    begin = time.monotonic()
    while time.monotonic() - begin < seconds:
        if idle(fleet):
            return time.monotonic() - begin
        time.sleep(0.05)
    return None


def unread(report, fleet):
    """A client that asks for a long answer and reads nothing, and then leaves."""
    body = b'{"model":"tiny","prompt":"a","max_tokens":3000,"ignore_eos":true,"temperature":0,"stream":true}'
    head = f"POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    readers = []
    for _ in range(8):
        reader = socket.socket()
        reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        reader.connect(("127.0.0.1", fleet.port))
        reader.sendall(head.encode() + body)
        readers.append(reader)
    time.sleep(0.5)
    answers = asyncio.run(load.run(fleet.url, bodies(100), PARALLEL))
    failed = [answer.error for answer in answers if answer.error]
    report.add("beside 8 clients that read nothing: none of 100 failed", failed[:1] or "none", not failed)
    report.note("beside 8 clients that read nothing: memory of the frontend", f"{fleet.frontend.megabytes():.0f} MB")
    for reader in readers:
        reader.close()
    seconds = until_idle(fleet)
    report.add("clients that leave free their workers", f"idle after {seconds} s" if seconds is None else f"idle after {seconds:.2f} s", seconds is not None)


def full(report, fleet):
    """More requests than a worker takes."""
    answers = asyncio.run(load.run(fleet.url, bodies(64, 32), 64))
    whole = [answer for answer in answers if not answer.error]
    refused = [answer for answer in answers if answer.error]
    is_named = bool(refused) and all("which is the limit" in answer.error for answer in refused)
    report.add("a full queue refuses by name, and the rest is answered", f"{len(whole)} answered, {len(refused)} refused", is_named and len(whole) >= 8)
    if refused:
        report.note("a full queue: what clients are told", refused[0].error[:160])
    again = asyncio.run(load.run(fleet.url, bodies(4, 8), 1))
    report.add("a queue that was full answers again", "4 of 4", not any(answer.error for answer in again))
