"""Logging: one line per record, as JSON or text, with its trace id. Repetition is limited, secrets
are removed.

Levels: an error requires an operator; a warning is a failure that Tutti handles, or a removal of
pods; info is a performed action, debug a skipped one.

Code logs through `logging.getLogger(__name__)`; values go into `extra={"gang": …}` and become
fields of the line, also the trace id.
"""

import collections
import datetime as dt
import logging
import re
import sys
import time
from collections.abc import Callable
from typing import Final, Literal

import msgspec
from typing_extensions import override

from shared.model.bounded_text import shortened

# Nothing here writes a secret on purpose; but an address may hold a password, and an error may
# quote what it was about. So this is the last check of log lines and of files of a bundle, not the
# only one.
#: Stands where a secret was.
HIDDEN: Final = "***"

_SECRET: Final = re.compile(
    # Name and password in an address.
    r"(?<=://)[^/\s@\"']+(?=@)"
    # Tokens: as a header has them, and JWTs wherever they are.
    r"|(?<=bearer )[A-Za-z0-9._~+/=-]{8,}"
    r"|\beyJ[\w-]{8,}\.[\w-]+\.[\w-]*"
    # NATS seeds: of accounts, clusters, operators, servers, users, curves.
    r"|\bS[ACNOUX][A-Z2-7]{56}\b"
    # Keys, up to where the line ends or the key does.
    r"|(?<=PRIVATE KEY-----).+?(?=-----END|$)"
    # A kubeconfig's.
    r"|(?<=client-key-data: )\S+",
    re.IGNORECASE | re.DOTALL,
)


def without_secrets(text: str) -> str:
    """The same text, with HIDDEN in place of what looks like a secret."""
    return _SECRET.sub(HIDDEN, text)


#: Lines of one message template in a window; further ones are only counted.
LINES_MAX: Final = 20
WINDOW_S: Final = 10.0
#: Message templates whose repetition is counted; the one with the oldest window is forgotten first.
TEMPLATES_MAX: Final = 1000

#: The message of a line, and each field: both may contain users' texts. Collectors of logs cut
#: lines at 16 KiB (containerd) or refuse them.
TEXT_BYTES_MAX: Final = 8 * 1024

_STANDARD: Final = frozenset(vars(logging.makeLogRecord({}))) | {
    "message",
    "asctime",
    "taskName",
    "trace_id",
    "suppressed",
}


class RepetitionFilter(logging.Filter):
    """Passes `LINES_MAX` lines of one message template per window. The next window's first line
    has the number of dropped ones.
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
            "message": shortened(record.getMessage(), TEXT_BYTES_MAX),
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
        message = shortened(record.getMessage(), TEXT_BYTES_MAX)
        line = f"{_instant(record)} {record.levelname:7} {record.name}: {message}{extras}"
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return without_secrets(line)


def _instant(record: logging.LogRecord) -> str:
    at = dt.datetime.fromtimestamp(record.created, dt.UTC)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _extras(record: logging.LogRecord) -> dict[str, object]:
    extras: dict[str, object] = {
        key: shortened(value, TEXT_BYTES_MAX) if isinstance(value, str) else value
        for key, value in vars(record).items()
        if key not in _STANDARD
    }
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
    """Send every logger to stderr in one format, replacing any earlier configuration."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        JsonFormatter(service, instance) if log_format == "json" else TextFormatter()
    )
    handler.addFilter(RepetitionFilter())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    logging.captureWarnings(capture=True)
    # At INFO these log each connection and each request.
    for noisy in ("aiohttp.access", "nats", "urllib3", "asyncio"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
