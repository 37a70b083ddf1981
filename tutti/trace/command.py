"""`tutti trace`: the timeline of one gang, with the spans of Jaeger that are not in the streams, if
its address is given: its admission, the objects that controllers created, and the delays of
services in reading and writing.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Final
from urllib.parse import quote

import aiohttp
import click
import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from shared.kube.errors import Forbidden
from shared.telemetry.tracing import jaeger_trace_url
from tutti.api.access import Access, open_namespace
from tutti.api.failures import run
from tutti.api.flags import access_flags, namespace_flag, report_flag
from tutti.api.output import print_report
from tutti.client.asynchronous import AsyncClient
from tutti.terminal import report_console
from tutti.trace.timeline import Line, Timeline, Wanted, read_reference, timeline, with_lines
from tutti.why.kinds import complete_reference

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


async def exported_lines(address: str, trace_ids: Iterable[str]) -> list[Line]:
    """Lines for the spans of these traces; unknown traces are skipped. Raises JaegerError."""
    timeout = aiohttp.ClientTimeout(total=_TIMEOUT_S)
    lines: list[Line] = []
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
                lines += _lines(trace)
    return lines


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


@click.command()
@click.argument("gang", metavar="GANG", shell_complete=complete_reference)
@namespace_flag()
@access_flags
@click.option(
    "--jaeger",
    "address",
    default="",
    envvar="TUTTI_JAEGER",
    metavar="URL",
    help="Also query this Jaeger, and print links to it.  [env: TUTTI_JAEGER]",
)
@report_flag
def trace(*, gang: str, namespace: str, access: Access, address: str, output: str) -> None:
    """Show what happened to a gang, and when.

    GANG is the name of a PodGroup or of a Volcano Job, NAMESPACE/NAME, KIND/NAME as lists of gangs
    have it, or a gang's id: the UID of a PodGroup. Tutti's API has the newest decisions, what
    binders did and how the gang went on, also of gangs that are deleted. Exits with status 2 when
    no such gang is known.
    """
    history = run(_read(access, gang, namespace, address))
    print_report(history, output, lambda: show(history, report_console(), address))


async def _read(access: Access, gang: str, given: str, address: str) -> Timeline:
    async with open_namespace(access, given) as (kube, namespace):
        client = AsyncClient(kube=kube)
        wanted = await _by_title(client, read_reference(gang, namespace))
        where, everywhere = wanted.namespace, bool(wanted.gang_id and not wanted.title)
        gangs = await client.gangs(namespace=where, all_namespaces=everywhere)
        decisions = await client.decisions(namespace=where, all_namespaces=everywhere)
    history = timeline(wanted, gangs, decisions)
    exported = await _from_jaeger(address, history.traces)
    return with_lines(history, exported)


async def _by_title(client: AsyncClient, wanted: Wanted) -> Wanted:
    """The gang that has the reference as its title, also one that is gone, if there is one; else
    the reference itself.
    """
    if not wanted.title:
        return wanted
    try:
        gangs = await client.gangs(namespace=wanted.place)
        decisions = await client.decisions(namespace=wanted.place)
    except Forbidden:
        return wanted
    titled = [gang.metadata for gang in gangs if gang.status.title == wanted.title]
    if titled:
        return Wanted("", titled[-1].namespace, titled[-1].name)
    gone = [decision.status for decision in decisions if decision.status.title == wanted.title]
    return Wanted(gone[-1].gang_id, wanted.place, wanted.name) if gone else wanted


async def _from_jaeger(address: str, trace_ids: Sequence[str]) -> list[Line]:
    """Lines from Jaeger; when it does not answer, that is reported, and the rest is shown."""
    if not address:
        return []
    try:
        return await exported_lines(address, trace_ids)
    except JaegerError as error:
        click.echo(f"tutti: {error}", err=True)
        return []


def show(history: Timeline, console: Console, address: str) -> None:
    console.print(Text(f"{history.gang} ({history.gang_id}): {history.phase}", "bold"))
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("TIME (UTC)", no_wrap=True)
    table.add_column("AFTER", justify="right", no_wrap=True)
    table.add_column("TOOK", justify="right", no_wrap=True)
    table.add_column("WHAT", no_wrap=True)
    table.add_column("DETAIL", overflow="fold")
    begun_ms = history.lines[0].at_ms if history.lines else 0
    for line in history.lines:
        table.add_row(*_cells(line, begun_ms), style="red" if line.failed else "")
    console.print(table)
    for number, trace_id in enumerate(history.traces, start=1):
        where = jaeger_trace_url(address, trace_id) if address else trace_id
        console.print(Text(f"trace {number}: {where}"), soft_wrap=True)


def _cells(line: Line, begun_ms: int) -> tuple[str, str, str, str, Text]:
    at = datetime.fromtimestamp(line.at_ms / 1000, UTC)
    return (
        at.strftime("%H:%M:%S.") + f"{line.at_ms % 1000:03d}",
        f"+{_duration(line.at_ms - begun_ms)}",
        _duration(line.took_ms) if line.took_ms > 0 else "",
        line.what,
        Text(line.detail),
    )


def _duration(ms: int) -> str:
    return f"{ms} ms" if ms < 10_000 else f"{ms / 1000:.1f} s"
