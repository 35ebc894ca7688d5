"""A page on this machine that renews itself while an experiment runs.

The server answers on the loopback interface only, and only requests that name it as localhost, so that neither another
machine nor a site that resolves to this one can read the runs. It never writes to the folder.
"""

from __future__ import annotations

import errno
import json
import threading
import time
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote

from gainful.errors import ExperimentError, GainfulError, InvalidArgumentError
from gainful.experiments.store import STORE_FILE, Store
from gainful.locks import writer_of
from gainful.report.collect import collect, plans_of
from gainful.report.live_note import LiveNote, live_note
from gainful.report.page import page
from gainful.report.page_data import packed_plans
from gainful.report.writing import asset, escaped, head, page_policy

LOCAL_HOST = "127.0.0.1"
USUAL_PORT = 8765
PLANS = "/plans/"
REST_FACTOR = 4.0
"""A page is made at most once in this many times the time that making it took, until the experiment is complete."""


class WatchedFolder:
    """The state and the page of an experiment, made anew only if its files have changed."""

    def __init__(self, folder: str | Path) -> None:
        path = Path(folder)
        self.folder = path if path.is_dir() else path.parent
        self._lock = threading.Lock()
        self._files: tuple[object, ...] = ()
        self._counts, self._title = (0, 0), ""
        self._page, self._version, self._made_at, self._took = "", "", 0.0, 0.0
        self.progress()  # an error here is the caller's

    def progress(self) -> LiveNote:
        """How far the experiment is; the version changes if there is a new page to fetch."""
        with self._lock:
            files = _fingerprint(self.folder / STORE_FILE)
            if files != self._files:
                with Store.read(self.folder) as store:
                    rows, self._title = store.progress(), store.title
                self._counts = sum(row["planned"] for row in rows), sum(row["finished"] for row in rows)
                self._files = _fingerprint(self.folder / STORE_FILE)
            planned, finished = self._counts
            rested = finished >= planned or time.monotonic() - self._made_at >= REST_FACTOR * self._took
            version = f"{planned}-{finished}" if rested or not self._version else self._version
            return LiveNote(version, planned, finished, writer_of(self.folder) is not None)

    def page(self) -> str:
        """The page as it is now, or one that says that no run has finished yet."""
        note = self.progress()
        with self._lock:
            if note.version != self._version:
                began = time.monotonic()
                try:
                    made = page(collect(self.folder), note)
                except ExperimentError:
                    return _waiting(note, self._title)
                self._page, self._version = made, note.version
                self._made_at, self._took = time.monotonic(), time.monotonic() - began
            return self._page


class WatchServer(ThreadingHTTPServer):
    """Serves the page (`/`), how far the experiment is (`/progress`) and the episodes of any run (`/plans/ID`)."""

    daemon_threads = True

    def __init__(self, folder: str | Path, port: int | None = None) -> None:
        self.watched = WatchedFolder(folder)
        try:
            super().__init__((LOCAL_HOST, USUAL_PORT if port is None else port), _Handler)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            if port is not None:
                raise InvalidArgumentError(
                    "--port", port, hint="leave it out to get a free one", problem=f"port {port} is in use"
                ) from error
            super().__init__((LOCAL_HOST, 0), _Handler)

    @property
    def address(self) -> str:
        """The address to open in a browser."""
        return f"http://localhost:{self.server_address[1]}/"


class _Handler(BaseHTTPRequestHandler):
    """One request; everything but GET and HEAD is refused."""

    server: WatchServer
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "gainful", ""
    timeout = 30

    def do_GET(self) -> None:
        self._answer()

    def do_HEAD(self) -> None:
        self._answer()

    def _answer(self) -> None:
        port = self.server.server_address[1]
        if self.headers.get("Host") not in (f"localhost:{port}", f"{LOCAL_HOST}:{port}"):
            self._send(HTTPStatus.MISDIRECTED_REQUEST, "text/plain", f"this is http://localhost:{port}/\n")
            return
        try:
            if self.path in ("/", "/page"):
                self._send(HTTPStatus.OK, "text/html", self.server.watched.page())
            elif self.path == "/progress":
                note = self.server.watched.progress()
                fields = {**vars(note), "complete": note.complete, "text": note.text}
                self._send(HTTPStatus.OK, "application/json", json.dumps(fields))
            elif self.path.startswith(PLANS):
                self._send_plans(unquote(self.path.removeprefix(PLANS)))
            else:
                self._send(HTTPStatus.NOT_FOUND, "text/plain", "there is only / here\n")
        except GainfulError as error:  # the folder was moved or damaged in the meantime
            self._send(HTTPStatus.SERVICE_UNAVAILABLE, "text/plain", f"{error}\n")

    def _send_plans(self, run_id: str) -> None:
        plans = plans_of(self.server.watched.folder, run_id)
        if plans:
            self._send(HTTPStatus.OK, "application/json", json.dumps({"plans": packed_plans(plans)}))
        else:
            self._send(HTTPStatus.NOT_FOUND, "text/plain", "this run has stored no plans\n")

    def _send(self, status: HTTPStatus, kind: str, text: str) -> None:
        body = text.encode("utf-8", "replace")
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        self.send_header("X-Frame-Options", "DENY")
        self.send_header("Referrer-Policy", "no-referrer")
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Requests are not worth a line each."""


def _fingerprint(path: Path) -> tuple[object, ...]:
    """Size and time of the store and its log: they change with every stored run."""
    found: list[object] = []
    for file in (path, path.with_name(path.name + "-wal")):
        try:
            status = file.stat()
        except OSError:
            found.append(None)
        else:
            found.append((status.st_size, status.st_mtime_ns))
    return tuple(found)


def _waiting(note: LiveNote, title: str) -> str:
    """A page that names the experiment and says that there is nothing to see yet."""
    scripts = [asset("watch.js")]
    name = escaped(title or "An experiment")
    text = f"None of {note.planned:,} runs has finished yet. The page appears with the first one."
    return (
        f"{head(f'Waiting: {title}' if title else 'Waiting', page_policy(scripts, note))}<body>\n{live_note(note)}"
        f'<main id="main"><h1>{name}</h1><p>Waiting for the first run. {escaped(text)}</p></main>'
        f"<script>{scripts[0]}</script>\n</body>\n</html>\n"
    )
