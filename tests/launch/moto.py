"""A real server with the interface of S3, and a way to it that fails now and then.

moto does not resolve together with our dependencies, so it has an environment of its
own, which is made once for each session.
"""

import http.client
import os
import random
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

REQUIREMENT = "moto[s3,server]==5.2.5"
OWN_HEADERS = ("transfer-encoding", "connection", "date", "server", "content-length")
RNG = random.SystemRandom()


@contextmanager
def served(environment):
    """Start the server; yield its address.

    QUALMS_MOTO names the Python of an environment that has moto already.
    """
    python = os.environ.get("QUALMS_MOTO") or environment / "bin/python"
    if "QUALMS_MOTO" not in os.environ:
        subprocess.run([sys.executable, "-m", "venv", environment], check=True)
        install = [python, "-m", "pip", "install", "-q", REQUIREMENT]
        subprocess.run(install, check=True, capture_output=True)
    port = free_port()
    with subprocess.Popen(
        [python, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as server:
        address = f"http://127.0.0.1:{port}"
        try:
            until_it_answers(address)
            yield address
        finally:
            server.kill()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def until_it_answers(address):
    for _ in range(600):
        try:
            urllib.request.urlopen(f"{address}/moto-api/").close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise AssertionError("moto did not start")


@contextmanager
def flaky(address, share):
    """Yield another address of the server, where this share of the calls fails.

    Half of them fail before the server hears of them, half after it has answered.
    """
    with FlakyServer(address, share) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}", server
        finally:
            server.shutdown()
            thread.join()


class FlakyServer(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, target, share):
        super().__init__(("127.0.0.1", 0), FlakyHandler)
        self.target, self.share, self.calls, self.failures = target, share, 0, 0

    def handle_error(self, *args):
        """Say nothing of connections that were cut on purpose."""


class FlakyHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        """Say nothing."""

    def handle_call(self):
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length) if length else None
        chance = RNG.random() / self.server.share
        self.server.calls += 1
        self.server.failures += chance < 1
        if chance < 0.5:
            self.answer(503, {}, b"")
            return
        status, headers, content = forward(self, self.server.target, body)
        if chance < 1:
            self.close_connection = True
            self.connection.close()
            return
        self.answer(status, headers, content)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = handle_call  # noqa: N815

    def answer(self, status, headers, content):
        self.send_response(status)
        for name, value in headers.items():
            if name.lower() not in OWN_HEADERS:
                self.send_header(name, value)
        is_head = self.command == "HEAD"
        size = headers.get("Content-Length", "0") if is_head else len(content)
        self.send_header("Content-Length", str(size))
        self.end_headers()
        if not is_head:
            self.wfile.write(content)


def forward(handler, address, body):
    """Return status, headers and content of the server's answer."""
    host, _, port = address.removeprefix("http://").partition(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=60)
    try:
        headers = {
            name: value
            for name, value in handler.headers.items()
            if name.lower() not in ("connection", "expect")
        }
        connection.request(handler.command, handler.path, body, headers)
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()
    finally:
        connection.close()


def environment(address, scratch, cache):
    """Variables of a process that uses the server."""
    return os.environ | {
        "AWS_ENDPOINT_URL": address,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
        "QUALMS_SCRATCH": str(scratch),
        "QUALMS_CACHE": str(cache),
        "OMP_NUM_THREADS": "1",
    }
