"""A server for one person on one machine: bound to 127.0.0.1, behind a random token.

Other users of the machine and pages of other sites cannot read it: the address holds a
token that is compared in constant time, the name of the host must be that of this
machine, so that no other name can be pointed at it, and nothing can be changed by it.
"""

import errno
import hmac
import json
import secrets
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from qualms.report.site.assets import script, style
from qualms.report.site.live._page import (
    ASSETS,
    CONNECT,
    PAGE,
    asset,
    live_page,
    served,
)
from qualms.report.site.live._runs import LiveRuns
from qualms.report.site.live._site import LiveSite
from qualms.report.site.page import plain_data
from qualms.report.site.shell import SCRIPT, STYLE

HOST = "127.0.0.1"
_SHARED = {SCRIPT: script, STYLE: style}
NAMES = (HOST, "localhost")
TOKEN_BYTES = 24
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".json": "application/json",
    ".csv": "text/csv; charset=utf-8",
    ".tex": "text/plain; charset=utf-8",
    ".txt": "text/plain; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".webp": "image/webp",
    ".pdf": "application/pdf",
}
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src"
    f" 'self'; img-src 'self' data:; {CONNECT} base-uri 'none'; form-action 'none';"
    " frame-ancestors 'none'",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class LiveServer(ThreadingHTTPServer):
    """Serves a site and the progress of runs on this machine alone."""

    daemon_threads = True

    def __init__(
        self, site: LiveSite, runs: LiveRuns, *, port: int = 0, command: str = ""
    ) -> None:
        """Take the port.

        Args:
            site: The site.
            runs: The runs of the live page.
            port: The port; 0 for any that is free.
            command: What started it; it stands on the live page.

        Raises:
            OSError: If the port is taken, or is not allowed.
        """
        self.site, self.runs, self.command = site, runs, command
        self.token = secrets.token_urlsafe(TOKEN_BYTES)
        try:
            super().__init__((HOST, port), _Handler)
        except OSError as error:
            raise OSError(_refused(port, error)) from error

    @property
    def address(self) -> str:
        """The address to open."""
        return f"http://{HOST}:{self.server_port}/{self.token}/"

    def state(self) -> dict[str, Any]:
        """Return what the live page shows."""
        problem = self.site.problem
        site = {"version": self.site.version, "problem": problem}
        return {**self.runs.state(), **site}


def serve(server: LiveServer) -> None:
    """Serve until the user interrupts."""
    watching = threading.Thread(target=server.site.watch, daemon=True)
    watching.start()
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass
    finally:
        server.site.end()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    server: LiveServer
    timeout = 30
    server_version = "qualms"
    sys_version = ""

    def do_GET(self) -> None:
        """Answer with a page, a file or data."""
        if not self._is_for_this_machine():
            self._say(HTTPStatus.MISDIRECTED_REQUEST, "not this machine's name")
            return
        if self.path == "/favicon.ico":  # browsers ask for it by themselves
            self._send(b"", ".txt", HTTPStatus.NO_CONTENT)
            return
        address = urlsplit(self.path)
        token, slash, rest = unquote(address.path).removeprefix("/").partition("/")
        mine = self.server.token.encode()
        if not hmac.compare_digest(token.encode("utf-8", "replace"), mine) or not slash:
            self._say(HTTPStatus.NOT_FOUND, "nothing is here")
            return
        self._answer(rest or "index.html", parse_qs(address.query))

    do_HEAD = do_GET  # noqa: N815 - the name that http.server looks for

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Print nothing: addresses hold the token."""

    def _is_for_this_machine(self) -> bool:
        hosts = self.headers.get_all("Host") or []
        names = [f"{name}:{self.server.server_port}" for name in NAMES]
        return len(hosts) == 1 and hosts[0].lower() in names

    def _answer(self, path: str, query: dict[str, list[str]]) -> None:
        server = self.server
        if path == "live.json":
            self._send(_json(server.state()), ".json")
        elif path == "log.json":
            log = server.runs.log(query.get("run", [""])[0])
            self._found(None if log is None else _json({"log": log}), ".json")
        elif path in _SHARED:  # the live page needs them before there is a site
            self._send(_SHARED[path]().encode(), PurePosixPath(path).suffix)
        elif path in ASSETS:
            self._send(asset(path), PurePosixPath(path).suffix)
        elif path == PAGE or (path == "index.html" and not server.site.version):
            text = served(live_page(server.command), current=True)
            self._send(text.encode(), ".html")
        else:
            self._send_file(path)

    def _send_file(self, path: str) -> None:
        content = _read_below(self.server.site.folder, path)
        ending = PurePosixPath(path).suffix
        if content is not None and ending == ".html":
            content = served(content.decode("utf-8")).encode()
        self._found(content, ending)

    def _found(self, content: bytes | None, ending: str) -> None:
        if content is None:
            self._say(HTTPStatus.NOT_FOUND, "nothing is here")
        else:
            self._send(content, ending)

    def _say(self, status: HTTPStatus, words: str) -> None:
        self._send(f"{words}\n".encode(), ".txt", status)

    def _send(
        self, content: bytes, ending: str, status: HTTPStatus = HTTPStatus.OK
    ) -> None:
        self.send_response(status)
        self.send_header("Content-Type", TYPES.get(ending, "application/octet-stream"))
        self.send_header("Content-Length", str(len(content)))
        for name, value in HEADERS.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)


def _json(value: object) -> bytes:
    return json.dumps(plain_data(value), allow_nan=False).encode()


def _read_below(folder: Path, path: str) -> bytes | None:
    """Return a file of a folder; None if there is none, or it is outside."""
    try:
        file = (folder / path).resolve()
        if not file.is_relative_to(folder.resolve()) or not file.is_file():
            return None
        return file.read_bytes()
    except (OSError, ValueError):
        return None


def _refused(port: int, error: OSError) -> str:
    """Say why a port cannot be used, and what to do."""
    if error.errno == errno.EADDRINUSE:
        why = f"port {port} is taken by another program"
    else:
        why = f"port {port} cannot be used: {error.strerror or error}"
    return f"{why}; choose another with --port, or leave it out for a free one"
