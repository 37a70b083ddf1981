"""Spans of a gang in Jaeger that are not in the streams: its admission, the objects that
controllers created, and the delays of services in reading and writing.
"""

from collections.abc import Iterable, Iterator
from typing import Final
from urllib.parse import quote

import aiohttp
import msgspec

from tutti.trace.timeline import Line

_TIMEOUT_S: Final = 5.0
_MICROSECONDS: Final = 1000
_SERVICE_PREFIX: Final = "tutti-"
#: The spans that are shown, with the attributes that are shown of each.
_SHOWN: Final = {
    "admit": ("kind", "result"),
    "make group": (),
    "make pods": ("pods",),
    "observe": (),
    "report": ("phase", "reason"),
}


class JaegerError(Exception):
    """Jaeger does not answer, or not as expected; the message has the URL and the reason."""


class _Tag(msgspec.Struct, frozen=True):
    key: str
    value: str | int | float | bool = ""


class _Span(msgspec.Struct, frozen=True, rename="camel"):
    operation_name: str
    start_time: int
    duration: int
    process: str = msgspec.field(name="processID", default="")
    tags: tuple[_Tag, ...] = ()


class _Process(msgspec.Struct, frozen=True, rename="camel"):
    service_name: str = ""


class _Trace(msgspec.Struct, frozen=True):
    spans: tuple[_Span, ...] = ()
    processes: dict[str, _Process] = {}


class _Answer(msgspec.Struct, frozen=True):
    data: tuple[_Trace, ...] | None = None


_decode: Final = msgspec.json.Decoder(_Answer).decode


async def lines(address: str, trace_ids: Iterable[str]) -> list[Line]:
    """Lines for the spans of these traces; unknown traces are skipped. Raises JaegerError."""
    timeout = aiohttp.ClientTimeout(total=_TIMEOUT_S)
    found: list[Line] = []
    async with aiohttp.ClientSession(timeout=timeout) as session:
        for trace_id in trace_ids:
            url = f"{address.rstrip('/')}/api/traces/{quote(trace_id)}"
            try:
                async with session.get(url) as answer:
                    if answer.status == 404:
                        continue
                    if answer.status != 200:
                        raise JaegerError(f"{url} answers {answer.status}")
                    decoded = _decode(await answer.read())
            except msgspec.MsgspecError as error:
                raise JaegerError(f"{url} is not Jaeger: {error}") from None
            except (TimeoutError, aiohttp.ClientError, ValueError) as error:
                # A timeout has no message.
                raise JaegerError(f"{url}: {str(error) or type(error).__name__}") from None
            for trace in decoded.data or ():
                found += _lines(trace)
    return found


def _lines(trace: _Trace) -> Iterator[Line]:
    for span in trace.spans:
        if span.operation_name not in _SHOWN:
            continue
        tags = {tag.key: str(tag.value) for tag in span.tags}
        words = [tags[key] for key in _SHOWN[span.operation_name] if tags.get(key)]
        error = tags.get("otel.status_description", "") if "error" in tags else ""
        process = trace.processes.get(span.process, _Process())
        service = process.service_name.removeprefix(_SERVICE_PREFIX)
        yield Line(
            at_ms=(span.start_time + span.duration) // _MICROSECONDS,
            what=span.operation_name,
            detail=", ".join(part for part in (" ".join(words), f"by {service}", error) if part),
            took_ms=span.duration // _MICROSECONDS,
            failed=bool(error),
        )
