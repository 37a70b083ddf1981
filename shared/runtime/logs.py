"""Logging: one line per record, JSON or text, with the trace it belongs to; repetition is bounded,
secrets are taken out.

Levels: an error needs a person, a warning is something that went wrong and is dealt with, or pods
that are removed; info is what was done, debug what was left.

Code logs through `logging.getLogger(__name__)`; facts go into `extra={"gang": …}` and become fields
of the line. `in_trace` gives a trace id to all that is logged inside it.
"""

import collections
import contextlib
import contextvars
import datetime as dt
import logging
import sys
import time
from collections.abc import Callable, Iterator
from typing import Final, Literal

import msgspec
from typing_extensions import override

from shared.runtime.redaction import without_secrets

#: Of one message (by its template) at most this many lines in one window; then one line that
#: counts.
LINES_MAX: Final = 20
WINDOW_S: Final = 10.0
#: Messages whose repetition is watched at a time; the least recently logged is forgotten.
TEMPLATES_MAX: Final = 1000

_trace_id: contextvars.ContextVar[str] = contextvars.ContextVar("trace_id", default="")
_STANDARD: Final = frozenset(vars(logging.makeLogRecord({}))) | {
    "message",
    "asctime",
    "taskName",
    "trace_id",
    "suppressed",
}


@contextlib.contextmanager
def in_trace(trace_id: str) -> Iterator[None]:
    """Everything logged inside carries `trace_id`."""
    token = _trace_id.set(trace_id)
    try:
        yield
    finally:
        _trace_id.reset(token)


class TraceFilter(logging.Filter):
    """Writes the current trace id into each record that was not given one of its own."""

    @override
    def filter(self, record: logging.LogRecord) -> bool:
        record.trace_id = getattr(record, "trace_id", "") or _trace_id.get()
        return True


class RepetitionFilter(logging.Filter):
    """Lets `LINES_MAX` lines of one message through per window; the next window's first one says
    how many were dropped.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._monotonic = monotonic
        #: Message -> [start of its window, lines in it].
        self._windows: collections.OrderedDict[tuple[str, int, str], list[float]] = (
            collections.OrderedDict()
        )

    @override
    def filter(self, record: logging.LogRecord) -> bool:
        now = self._monotonic()
        key = (record.name, record.levelno, str(record.msg))
        window = self._windows.get(key)
        if window is None or now - window[0] >= WINDOW_S:
            dropped = 0 if window is None else max(0, int(window[1]) - LINES_MAX)
            self._windows[key] = [now, 1]
            self._windows.move_to_end(key)
            if len(self._windows) > TEMPLATES_MAX:
                self._windows.popitem(last=False)
            if dropped:
                record.suppressed = dropped
            return True
        window[1] += 1
        return window[1] <= LINES_MAX


class JsonFormatter(logging.Formatter):
    """One JSON object per line."""

    def __init__(self, service: str, instance: str) -> None:
        super().__init__()
        self._fixed = {"service": service, "instance": instance}

    @override
    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "at": _instant(record),
            "level": record.levelname.lower(),
            **self._fixed,
            "logger": record.name,
            "message": record.getMessage(),
            **_extras(record),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return without_secrets(msgspec.json.encode(line, enc_hook=str).decode())


class TextFormatter(logging.Formatter):
    """Plain text: instant, level, logger, message, then the fields."""

    @override
    def format(self, record: logging.LogRecord) -> str:
        extras = "".join(f" {key}={value}" for key, value in _extras(record).items())
        line = (
            f"{_instant(record)} {record.levelname:7} {record.name}: {record.getMessage()}{extras}"
        )
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return without_secrets(line)


def _instant(record: logging.LogRecord) -> str:
    at = dt.datetime.fromtimestamp(record.created, dt.UTC)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _extras(record: logging.LogRecord) -> dict[str, object]:
    extras = {key: value for key, value in vars(record).items() if key not in _STANDARD}
    for key in ("trace_id", "suppressed"):
        if value := getattr(record, key, None):
            extras[key] = value
    return extras


def configure(
    service: str,
    instance: str,
    *,
    log_format: Literal["json", "text"],
    level: Literal["debug", "info", "warning", "error"],
) -> None:
    """Send every logger to stderr in one format, replacing what was configured before."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        JsonFormatter(service, instance) if log_format == "json" else TextFormatter()
    )
    handler.addFilter(RepetitionFilter())
    handler.addFilter(TraceFilter())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    logging.captureWarnings(capture=True)
    # What these say at INFO is each connection and each request.
    for noisy in ("aiohttp.access", "nats", "urllib3", "asyncio"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
