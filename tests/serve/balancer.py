"""Two `lapwing serve` behind nginx: one is drained with SIGTERM, and one is killed, under load that does not know of either.

usage: balancer.py LAPWING MODEL.gguf

Needs `nginx` (Debian: `sh tests/apt.sh nginx-light`). The configuration is that of docs/serve.md. Checked: no request fails while servers
are drained and started again; requests that run end; requests of a killed server that have not begun are sent to the other; `/ready`,
`Retry-After` and `Connection: close` while a server drains.
"""

import concurrent.futures
import http.client
import json
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

PROGRAM, MODEL = sys.argv[1], sys.argv[2]
PAGE = pathlib.Path(__file__).parent / "../../docs/serve.md"
SHORT = {"prompt": "a b c", "max_tokens": 8, "ignore_eos": True}


class Server:
    """A server on a port of its own, which it keeps when it is started again."""

    def __init__(self) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.start()

    def start(self) -> None:
        """Starts it, with its model loaded."""
        command = [PROGRAM, "serve", "-m", f"model={MODEL}", "-t", "1", "--preload", "--json", "--log", "off"]
        self.process = subprocess.Popen([*command, "--listen", f"127.0.0.1:{self.port}"], stdout=subprocess.PIPE, text=True)
        assert json.loads(self.process.stdout.readline())["address"].endswith(str(self.port))

    def end(self, how: int) -> int:
        """Sends a signal, and waits for the end."""
        self.process.send_signal(how)
        return self.process.wait(60)


def configuration(folder: str, port: int, servers: list[Server]) -> str:
    """The lines of docs/serve.md, with these ports, in a configuration that runs without root."""
    lines = re.search(r"```nginx\n(.*?)```", PAGE.read_text(), re.S).group(1)
    for written, server in zip(["10.0.0.1:8080", "10.0.0.2:8080"], servers, strict=True):
        assert written in lines
        lines = lines.replace(written, f"127.0.0.1:{server.port}")
    assert "listen 80;" in lines
    lines = lines.replace("listen 80;", f"listen 127.0.0.1:{port};")
    paths = "".join(f"{kind}_temp_path {folder}/{kind};\n" for kind in ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"])
    return f"daemon off; pid {folder}/pid; error_log {folder}/errors;\nevents {{}}\nhttp {{ access_log off;\n{paths}{lines}}}\n"


def ask(port: int, body: dict, stream: bool = False) -> tuple[int, str]:
    """Status and body of an answer; 0 if the connection broke."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    try:
        connection.request("POST", "/v1/completions", json.dumps(body | {"stream": stream}), {"content-type": "application/json"})
        response = connection.getresponse()
        return response.status, response.read().decode()
    except (OSError, http.client.HTTPException) as error:
        return 0, repr(error)
    finally:
        connection.close()


class Load:
    """Clients that ask one after another until they are stopped, and count."""

    def __init__(self, port: int, stream: bool, clients: int = 6) -> None:
        self.stop, self.done, self.failed = threading.Event(), 0, []
        self.threads = [threading.Thread(target=self.run, args=(port, stream)) for _ in range(clients)]
        for thread in self.threads:
            thread.start()

    def run(self, port: int, stream: bool) -> None:
        """One client."""
        while not self.stop.is_set():
            status, text = ask(port, SHORT, stream)
            whole = text.endswith("data: [DONE]\n\n") if stream else '"usage"' in text
            if status == 200 and whole:
                self.done += 1
            else:
                self.failed.append(f"{status} {text[:200]}")

    def end(self) -> tuple[int, list[str]]:
        """Number of answers, and what failed."""
        self.stop.set()
        for thread in self.threads:
            thread.join()
        return self.done, self.failed


def draining(server: Server) -> None:
    """What one server says to a connection that it has while it drains."""
    kept = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    kept.request("GET", "/ready")
    response = kept.getresponse()
    assert (response.status, response.read() and response.getheader("connection")) == (200, None), response.status
    with concurrent.futures.ThreadPoolExecutor() as pool:
        long = pool.submit(ask, server.port, SHORT | {"max_tokens": 150}, True)
        time.sleep(0.3)
        # A request of which the server has a part is answered, and its connection closed.
        kept.putrequest("GET", "/ready")
        kept.putheader("accept", "*/*")
        kept.endheaders()
        before = kept.getresponse()
        assert before.status == 200
        before.read()
        part = socket.create_connection(("127.0.0.1", server.port))
        part.sendall(b"GET /ready HTTP/1.1\r\nhost: localhost\r\n")
        time.sleep(0.3)
        server.process.send_signal(signal.SIGTERM)
        time.sleep(0.3)
        part.sendall(b"\r\n")
        answer = b""
        while chunk := part.recv(65536):
            answer += chunk
        text = answer.decode().lower()
        assert not text or (text.startswith("http/1.1 503") and "retry-after: 1" in text and "connection: close" in text), text
        print(f"  a connection with a part of a request: {'503, Retry-After, Connection: close' if text else 'closed'}")
        # An idle connection is closed, and a new one refused.
        assert kept.sock.recv(1) == b"", "an idle connection is not closed"
        try:
            socket.create_connection(("127.0.0.1", server.port)).close()
            raise AssertionError("a new connection is accepted")
        except ConnectionRefusedError:
            pass
        status, text = long.result()
        assert status == 200 and text.endswith("data: [DONE]\n\n"), (status, text[-300:])
    assert server.process.wait(60) == 0
    print("  the stream that ran came whole; the idle connection was closed; new ones were refused; exit code 0")


def main() -> None:
    """Runs all parts."""
    if not shutil.which("nginx"):
        sys.exit("nginx is missing: sh tests/apt.sh nginx-light")
    servers = [Server(), Server()]
    with socket.socket() as free, tempfile.TemporaryDirectory() as folder:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        pathlib.Path(folder, "nginx.conf").write_text(configuration(folder, port, servers))
        nginx = subprocess.Popen(["nginx", "-c", f"{folder}/nginx.conf", "-p", folder], stderr=subprocess.PIPE, text=True)
        try:
            time.sleep(1)
            assert nginx.poll() is None, nginx.stderr.read()
            run(port, servers)
        finally:
            nginx.terminate()
            nginx.wait()
            for server in servers:
                server.process.kill()
                server.process.wait()


def run(port: int, servers: list[Server]) -> None:
    """Drains, kills and restarts the servers behind the balancer."""
    assert ask(port, SHORT)[0] == 200
    for stream in [False, True]:
        load = Load(port, stream)
        for server in servers * 2:
            time.sleep(1)
            assert server.end(signal.SIGTERM) == 0
            time.sleep(0.5)
            server.start()
        done, failed = load.end()
        assert done > 50 and not failed, (done, failed[:3])
        print(f"{done} requests, stream {stream}, while each server was drained twice: none failed")
    load = Load(port, False)
    for server in servers:
        time.sleep(1)
        server.end(signal.SIGKILL)
        time.sleep(2)
        server.start()
        time.sleep(1)
    done, failed = load.end()
    assert done > 50 and not failed, (done, failed[:3])
    print(f"{done} requests while each server was killed: none failed")
    servers[0].end(signal.SIGTERM)
    servers[1].end(signal.SIGTERM)
    status, _ = ask(port, SHORT)
    assert status in (502, 504), status
    print(f"no server: {status}")
    for server in servers:
        server.start()
    draining(servers[0])


main()
