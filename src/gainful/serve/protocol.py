"""HTTP connections with limits: how long a head may be, how many requests may queue, how slowly a client may read.

uvicorn parses a head of any length, accepts any number of connections, and waits for a client to read its response for
as long as it likes. The service cannot ask for a key before that, so these limits are here, in the protocol.
"""

from __future__ import annotations

import asyncio
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MAX_HEAD = 1 << 16
"""Bytes of the request line and the headers, and of the trailers of a body in chunks (431)."""
MAX_HEADERS = 200
"""Headers of a request: a small one takes thirty times its size in memory (431)."""
MAX_PIPELINED = 100
"""Requests that a connection may send before the first of them is answered; it is closed beyond that."""
MORE_CONNECTIONS = 100
"""Connections beyond the limit that are still told so (503); further ones are closed at once."""
LEAST_READ = 1 << 16
"""Bytes that a client has to read in `seconds`, or all there are."""
SECONDS_AT_THE_END = 2.0
"""The same time while the service is stopping."""
SEND_BUFFER = 1 << 17
"""Bytes of a response that the operating system may hold for each connection: it would take megabytes by itself."""
_PIECE = 1 << 14


class HeadTooLargeError(Exception):
    """A head beyond the limits; it ends the parser."""


class BoundedProtocol(HttpToolsProtocol):
    """uvicorn's protocol, which closes a connection that exceeds a limit.

    The parser keeps what it has not recognised yet, so both count: the parts of the head that it has handed over, and
    the bytes since it last handed over anything. The latter also bounds a trailer or a chunk header without an end.
    """

    _head = 0
    _headers = 0
    _unrecognised = 0
    _too_large = False
    _answering: Any = None
    resumed = 0
    """How often the client has read most of what was waiting for it."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Make room by closing the connection that has been idle longest; close this one if there are far too many."""
        super().connection_made(transport)
        if self.limit_concurrency is None or len(self.connections) < self.limit_concurrency:
            return
        others: set[Any] = self.connections
        idle = [each for each in others if each.timeout_keep_alive_task is not None]
        if idle:
            oldest = min(idle, key=lambda each: each.timeout_keep_alive_task.when())
            others.discard(oldest)
            oldest.transport.abort()
        elif len(self.connections) > self.limit_concurrency + MORE_CONNECTIONS:
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell the request that is being answered; uvicorn tells the one that arrived last."""
        if self._answering is not None and not self._answering.response_complete:
            self._answering.disconnected = True
            self._answering.message_event.set()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse in pieces, so that a head is noticed soon after it exceeds its limit."""
        for start in range(0, len(data), _PIECE):
            if self.transport.is_closing():
                return
            piece = data[start : start + _PIECE]
            self._unrecognised += len(piece)  # what the parser recognises sets it to 0
            super().data_received(piece)
            if self._head + self._unrecognised > MAX_HEAD + _PIECE and not self.transport.is_closing():
                self._too_large = True
                self.send_400_response("The head of the request is too large.")

    def on_message_begin(self) -> None:
        """A head begins."""
        self._head = self._headers = self._unrecognised = 0
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        """A part of the path."""
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header or a trailer."""
        self._headers += 1
        self._count(len(name) + len(value) + 4)
        super().on_header(name, value)

    def _count(self, size: int) -> None:
        self._head += size
        self._unrecognised = 0
        if self._head > MAX_HEAD or self._headers > MAX_HEADERS:
            self._too_large = True
            raise HeadTooLargeError

    def on_headers_complete(self) -> None:
        """A request to answer, or to queue if another one is being answered."""
        self._unrecognised = 0
        if len(self.pipeline) >= MAX_PIPELINED:
            raise HeadTooLargeError
        super().on_headers_complete()
        if not self.pipeline:
            self._answering = self.cycle

    def on_response_complete(self) -> None:
        """Answer the next request in the queue."""
        following = self.pipeline[-1][0] if self.pipeline else None
        super().on_response_complete()
        self._answering = following

    def on_body(self, body: bytes) -> None:
        """A part of the body; the service itself limits its length."""
        self._unrecognised = 0
        super().on_body(body)

    def send_400_response(self, msg: str) -> None:
        """Refuse what is not HTTP (400) or too large (431), and close the connection."""
        cycle: Any = self.cycle  # None before the first request
        if cycle is not None and not cycle.response_complete:
            self.transport.abort()  # a second response would be taken for a part of the first
        elif self._too_large:
            text = b"The head of the request is too large."
            self.transport.write(
                b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-type: text/plain; charset=utf-8\r\n"
                b"content-length: %d\r\nconnection: close\r\n\r\n%b" % (len(text), text)
            )
            self.transport.close()
        else:
            super().send_400_response(msg)

    def resume_writing(self) -> None:
        """The client has read most of what was waiting for it."""
        self.resumed += 1
        super().resume_writing()


async def close_slow_connections(server: uvicorn.Server, seconds: float) -> None:
    """Close connections that start a request but do not finish its head in time, and those that do not read.

    uvicorn only limits the time that a connection is silent, and only after its first request. So this looks now and
    then at connections without a request in progress: new ones, and ones that have started another request (which turns
    uvicorn's timer off). A client that has a response waiting has to read LEAST_READ bytes of it in `seconds`, or all.
    """
    loop = asyncio.get_running_loop()
    sending: dict[Any, float] = {}
    reading: dict[Any, tuple[float, int, int]] = {}
    stopping = False
    while True:
        await asyncio.sleep(min(0.5, seconds / 4))
        now = loop.time()
        if server.should_exit and not stopping:
            stopping, reading = True, {}
        patience = min(seconds, SECONDS_AT_THE_END) if stopping else seconds
        connections: list[Any] = [each for each in list(server.server_state.connections) if _is_open(each)]
        sending = {each: sending.get(each, now) for each in connections if _owes_a_head(each)}
        reading = {each: _progress(each, reading.get(each), now) for each in connections if _unread(each)}
        for connection, since in sending.items():
            if now - since >= seconds:
                connection.transport.abort()
        for connection, (since, _, _) in reading.items():
            if now - since >= patience:
                connection.transport.abort()


def _is_open(connection: Any) -> bool:
    return connection.transport is not None


def _owes_a_head(connection: Any) -> bool:
    cycle = connection.cycle
    return cycle is None or (cycle.response_complete and connection.timeout_keep_alive_task is None)


def _unread(connection: Any) -> int:
    """Bytes of responses that the client has not read, apart from those in the buffers of the operating system."""
    return int(connection.transport.get_write_buffer_size())


def _progress(connection: Any, before: tuple[float, int, int] | None, now: float) -> tuple[float, int, int]:
    """Since when the client has read too little; the bytes unread and the count of resumptions at that time."""
    unread = _unread(connection)
    if before is None:
        return now, unread, connection.resumed
    since, most, resumed = before
    if connection.resumed > resumed or unread <= most - LEAST_READ:
        return now, unread, connection.resumed
    return since, max(most, unread), resumed
