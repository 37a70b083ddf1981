"""POSTs bodies to an OTLP/HTTP endpoint, from whatever thread; kept connection, few retries.

Headers (credentials, say) and a CA come from OpenTelemetry's own variables
`OTEL_EXPORTER_OTLP_HEADERS` and `OTEL_EXPORTER_OTLP_CERTIFICATE`, as every exporter takes them.
"""

import contextlib
import http.client
import socket
import ssl
import threading
import time
from collections.abc import Mapping
from typing import Final
from urllib.parse import unquote, urlsplit

#: One body, all tries together.
TIMEOUT_S: Final = 5.0
_FIRST_PAUSE_S: Final = 0.5
#: The endpoint is there and asks to be asked again.
_AGAIN: Final = frozenset({429, 502, 503, 504})
_PATH: Final = "/v1/traces"


class ExportFailed(Exception):
    """The endpoint did not take it; the message says what it said instead."""


class Poster:
    """One endpoint. `post` is called by one thread at a time, `stop` by any."""

    def __init__(self, endpoint: str, environ: Mapping[str, str]) -> None:
        """Connect to nothing yet.

        Raises:
            OSError: The CA cannot be read.
        """
        parts = urlsplit(endpoint)
        path = parts.path.rstrip("/")
        self._path = path if path.endswith(_PATH) else path + _PATH
        self._host = parts.hostname or ""
        self._port = parts.port
        self._tls = parts.scheme == "https"
        ca = environ.get("OTEL_EXPORTER_OTLP_CERTIFICATE") or None
        self._context = ssl.create_default_context(cafile=ca) if self._tls else None
        self._headers = {
            "Content-Type": "application/x-protobuf",
            **_headers(environ.get("OTEL_EXPORTER_OTLP_HEADERS", "")),
        }
        self._connection: http.client.HTTPConnection | None = None
        self._stopped = threading.Event()

    def post(self, body: bytes) -> None:
        """Send one body; on a failure that may pass again, until TIMEOUT_S are over.

        Raises:
            ExportFailed: It was refused, or nobody answered in time.
        """
        ends_s = time.monotonic() + TIMEOUT_S
        pause_s = _FIRST_PAUSE_S
        while True:
            try:
                status = self._try(body, max(0.1, ends_s - time.monotonic()))
            except (OSError, http.client.HTTPException) as error:
                self.close()
                problem = str(error) or type(error).__name__
            else:
                if 200 <= status < 300:
                    return
                problem = f"it answers {status}"
                if status not in _AGAIN:
                    raise ExportFailed(problem)
            if time.monotonic() + pause_s >= ends_s or self._stopped.wait(pause_s):
                raise ExportFailed(problem)
            pause_s *= 2

    def stop(self) -> None:
        """Give up what is being sent, and try nothing again."""
        self._stopped.set()
        connection = self._connection
        if connection is not None and connection.sock is not None:
            with contextlib.suppress(OSError):
                connection.sock.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the connection, if there is one."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _try(self, body: bytes, timeout_s: float) -> int:
        connection = self._connection
        if connection is None:
            if self._context is not None:
                connection = http.client.HTTPSConnection(
                    self._host, self._port, timeout=timeout_s, context=self._context
                )
            else:
                connection = http.client.HTTPConnection(self._host, self._port, timeout=timeout_s)
            self._connection = connection
        elif connection.sock is not None:
            connection.sock.settimeout(timeout_s)
        connection.request("POST", self._path, body, self._headers)
        answer = connection.getresponse()
        answer.read()
        return answer.status


def _headers(text: str) -> dict[str, str]:
    """`key=value,key=value`, values percent-encoded."""
    pairs = (pair.partition("=") for pair in text.split(",") if "=" in pair)
    return {key.strip(): unquote(value.strip()) for key, _, value in pairs}
