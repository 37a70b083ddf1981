"""Reads a job trace: Standard Workload Format, or a table with named columns (CSV).

A number that cannot be read, or a line that lacks columns, is an error with its line, column and
rule. A job that cannot be simulated, such as one without a run time, is left out and counted; a
strict reader refuses it.
"""

import csv
import gzip
import io
import math
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeAlias

import msgspec

Unit: TypeAlias = Literal["node", "cpu", "gpu"]
"""What the size of a job counts: whole nodes, CPUs or GPUs."""

_BYTES_MAX: Final = 1 << 30
_NUMBER_MAX: Final = 1e12
_GZIP: Final = b"\x1f\x8b"
_SWF: Final = (
    *("job number", "submit time", "wait time", "run time", "allocated processors"),
    *("average CPU time", "used memory", "requested processors", "requested time"),
    *("requested memory", "status", "user", "group", "application", "queue", "partition"),
    *("preceding job", "think time"),
)
_SWF_FIELDS: Final = {name: number for number, name in enumerate(_SWF, 1)}
#: Fields that no job depends on: they must be numbers only.
_SWF_UNREAD: Final = (
    *("wait time", "average CPU time", "used memory", "requested memory"),
    *("group", "application", "partition", "preceding job", "think time"),
)
#: Status 0: it failed; 5: it was cancelled. Lines with 2 to 4 are parts of the job of an earlier
#: line, which has its whole run time; such lines have no submit time.
_COMPLETED: Final = 1
_STATUS_MAX: Final = 5
_PARTIAL: Final = frozenset({2, 3, 4})
_PARTIAL_RULE: Final = "partial execution (status 2 to 4)"
_UNITS: Final[Mapping[Unit, str]] = {"gpu": "gpu_num", "node": "node_num", "cpu": "cpu_num"}


class InvalidTrace(Exception):
    """The trace cannot be read; the message names line, column and rule."""


class TraceJob(msgspec.Struct, frozen=True, kw_only=True):
    """One job of a trace."""

    name: str
    user: str
    queue: str = ""
    #: Seconds since the first submission.
    arrival_s: float
    run_s: float
    #: The user's own limit; 0: none.
    limit_s: float = 0.0
    size: int
    #: The number of nodes on which it ran, beside a size in GPUs or CPUs; 0: unknown.
    nodes: int = 0
    priority: int = 0


class Trace(msgspec.Struct, kw_only=True):
    """The jobs that can be simulated, in the order of their arrival."""

    unit: Unit
    jobs: list[TraceJob]
    #: Number of jobs that were left out, by the rule.
    left_out: dict[str, int] = {}
    #: Processors and nodes of the machine, as the trace's header has them; 0: unknown.
    processors: int = 0
    machine_nodes: int = 0


class TraceOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How a trace is read, and how its jobs become gangs: the command's options."""

    size_by: Unit | Literal["auto"] = "auto"
    queue_by: Literal["none", "user", "queue"] = "none"
    pool: Literal["auto", "yes", "no"] = "auto"
    #: The load to which arrivals are stretched; None: as in the trace.
    load: float | None = None
    #: The number of jobs that are read; None: all.
    jobs: int | None = None
    #: The largest interval between two submissions of a table.
    gap_max_ms: int = 86_400_000
    #: The resource of GPUs; "": the one of the nodes that has "gpu" in its name.
    gpu: str = ""
    strict: bool = False


class _Row(NamedTuple):
    line: int
    values: Mapping[str, str]
    #: In Standard Workload Format: the number of each column.
    fields: Mapping[str, int] = {}

    def refused(self, column: str, rule: str) -> InvalidTrace:
        """The error on a value."""
        place = f"column {column}"
        if self.fields:
            place = f"field {self.fields[column]} ({column})"
        return InvalidTrace(f"line {self.line}, {place}: {rule}")

    def number(self, column: str, *, default: float = -1.0, signed: bool = False) -> float:
        """A number of at least 0, unless `signed`; `default` if it is -1, which means unknown, or
        has no column.
        """
        text = self.values.get(column)
        if text is None:
            return default
        try:
            # Python's own numbers may also have underscores, and the digits of other scripts.
            value = float(text) if text.isascii() and "_" not in text else math.nan
        except ValueError:
            value = math.nan
        if not math.isfinite(value) or value > _NUMBER_MAX:
            raise self.refused(
                column, f"must be a number of at most {_NUMBER_MAX:g}, is {_shown(text)}"
            )
        if value == -1:
            return default
        if value < 0 and not signed:
            raise self.refused(column, f"must not be negative (-1 is: unknown), is {_shown(text)}")
        return value

    def whole(self, column: str, *, default: int = 0) -> int:
        value = self.number(column, default=default)
        if value != int(value):
            raise self.refused(column, f"must be a whole number, is {value:g}")
        return int(value)

    def text(self, column: str) -> str:
        value = self.values.get(column, "").strip()
        return "" if value == "-1" else value


def read_trace(path: Path, options: TraceOptions) -> Trace:
    """Read a trace, also a compressed one.

    Raises:
        InvalidTrace: It is none, or has no job that can be simulated.
        OSError: It cannot be read.
    """
    lines = _text_of(path).split("\n")
    if not any(line.strip() for line in lines):
        raise InvalidTrace("must have jobs, is empty")
    first = next((line for line in lines if line.strip() and not _is_comment(line)), "")
    trace = _read_swf(lines, options) if _is_swf(first) else _read_table(lines, options)
    if not trace.jobs:
        left_out = "; ".join(f"{count} {rule}" for rule, count in trace.left_out.items())
        raise InvalidTrace(f"must have a job that can be simulated: {left_out or 'it has none'}")
    trace.jobs.sort(key=lambda job: job.arrival_s)
    first_s = trace.jobs[0].arrival_s
    trace.jobs = [
        msgspec.structs.replace(job, arrival_s=job.arrival_s - first_s) for job in trace.jobs
    ]
    return trace


def _text_of(path: Path) -> str:
    with path.open("rb") as file:
        content = file.read(_BYTES_MAX + 1)
    if content.startswith(_GZIP):
        try:
            with gzip.open(io.BytesIO(content)) as opened:
                content = opened.read(_BYTES_MAX + 1)
        except (OSError, EOFError, zlib.error) as error:
            raise InvalidTrace(f"must be a whole gzip file: {error}") from None
    if len(content) > _BYTES_MAX:
        raise InvalidTrace(f"must have at most {_BYTES_MAX >> 20} MiB")
    if b"\0" in content:
        raise InvalidTrace("must be text, has bytes of value 0")
    # Comments of old traces are in old encodings; bytes of others are replaced in names only.
    return content.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace").replace("\r\n", "\n")


def _is_comment(line: str) -> bool:
    return line.lstrip().startswith((";", "#"))


def _is_swf(line: str) -> bool:
    """Whether a line begins with a number, and has no commas."""
    word = (line.split() or [""])[0]
    return "," not in line and word.lstrip("+-")[:1].isdigit()


class _Gathered:
    """The jobs read so far, and those left out."""

    def __init__(self, trace: Trace, options: TraceOptions) -> None:
        self.trace = trace
        self._options = options
        self._read = 0

    @property
    def full(self) -> bool:
        return self._read == self._options.jobs

    def leave_out(self, rule: str) -> None:
        self.trace.left_out[rule] = self.trace.left_out.get(rule, 0) + 1

    def add(self, line: int, job: TraceJob) -> None:
        self._read += 1
        rule = ""
        if job.run_s < 0:
            rule = "without a run time"
        elif job.size <= 0:
            rule = "without a size"
        if not rule:
            self.trace.jobs.append(msgspec.structs.replace(job, run_s=max(job.run_s, 1.0)))
        elif self._options.strict:
            raise InvalidTrace(f"line {line}: job {job.name} is {rule}")
        else:
            self.leave_out(rule)


# ------------------------------------------------------------------ Standard Workload Format


def _read_swf(lines: Sequence[str], options: TraceOptions) -> Trace:
    trace = Trace(unit="cpu" if options.size_by == "auto" else options.size_by, jobs=[])
    gathered = _Gathered(trace, options)
    for number, line in enumerate(lines, 1):
        if _is_comment(line):
            _read_header(trace, line)
        elif line.strip() and not gathered.full:
            words = line.split()
            if len(words) != len(_SWF):
                rule = f"must have {len(_SWF)} columns, has {len(words)}"
                raise InvalidTrace(f"line {number}: {rule}")
            row = _Row(number, dict(zip(_SWF, words, strict=True)), _SWF_FIELDS)
            for unread in _SWF_UNREAD:
                row.number(unread, signed=True)
            row.whole("job number")
            status = row.whole("status", default=_COMPLETED)
            if status > _STATUS_MAX:
                raise row.refused("status", f"must be 0 to {_STATUS_MAX}, is {status}")
            if status in _PARTIAL:
                gathered.leave_out(_PARTIAL_RULE)
            else:
                gathered.add(number, _swf_job(row))
    return trace


def _read_header(trace: Trace, line: str) -> None:
    """`; MaxProcs: 128`; a header without a number is a comment."""
    key, _, value = line.lstrip("; #\t").partition(":")
    words = value.split()
    if words and words[0].isascii() and words[0].isdigit() and len(words[0]) <= len("1000000000"):
        if key.strip() == "MaxProcs":
            trace.processors = int(words[0])
        elif key.strip() == "MaxNodes":
            trace.machine_nodes = int(words[0])


def _swf_job(row: _Row) -> TraceJob:
    arrival_s = row.number("submit time")
    if arrival_s < 0:
        raise row.refused("submit time", "must be known, is -1")
    return TraceJob(
        name=row.text("job number") or str(row.line),
        user=row.text("user") or "unknown",
        queue=row.text("queue"),
        arrival_s=arrival_s,
        run_s=row.number("run time"),
        limit_s=row.number("requested time", default=0),
        size=row.whole("requested processors") or row.whole("allocated processors"),
    )


# ------------------------------------------------------------------------------------ tables


def _read_table(lines: Sequence[str], options: TraceOptions) -> Trace:
    rows = _rows(lines)
    header, names = next(rows)
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated is not None:
        raise InvalidTrace(
            f"line {header}: must have each column once, has {_shown(repeated)} twice"
        )
    for wanted in (("run_time",), ("interval", "submit_time"), tuple(_UNITS.values())):
        if not any(name in names for name in wanted):
            rule = f"must have a column {' or '.join(wanted)}"
            raise InvalidTrace(f"line {header}: {rule}, has {_shown(', '.join(names))}")
    table = [_Row(line, dict(zip(names, words, strict=True))) for line, words in rows]
    unit = _unit_of(names, table) if options.size_by == "auto" else options.size_by
    if _UNITS[unit] not in names:
        raise InvalidTrace(f"line {header}: must have a column {_UNITS[unit]} for sizes by {unit}")
    trace = Trace(unit=unit, jobs=[])
    gathered = _Gathered(trace, options)
    arrival_s = 0.0
    for row in table:
        if gathered.full:
            break
        if "submit_time" in names:
            arrival_s = row.number("submit_time", default=arrival_s)
        else:
            arrival_s += min(row.number("interval", default=0), options.gap_max_ms / 1000)
        gathered.add(row.line, _table_job(row, unit, arrival_s))
    return trace


def _rows(lines: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
    """Number and words of each line, the one with the names of the columns first."""
    columns = 0
    for number, line in enumerate(lines, 1):
        if not line.strip() or _is_comment(line):
            continue
        try:
            words = [word.strip() for word in next(csv.reader([line]))]
        except csv.Error:
            rule = f"of at most {csv.field_size_limit():,} characters, without carriage returns"
            raise InvalidTrace(f"line {number}: must be comma-separated values {rule}") from None
        columns = columns or len(words)
        if len(words) != columns:
            raise InvalidTrace(f"line {number}: must have {columns} columns, has {len(words)}")
        yield number, words
    if not columns:
        raise InvalidTrace("must have jobs, has only comments")


def _unit_of(names: Sequence[str], table: Sequence[_Row]) -> Unit:
    """GPUs if any job has some, else nodes, else CPUs."""
    if "gpu_num" in names and any(row.number("gpu_num", default=0) for row in table):
        return "gpu"
    return "node" if "node_num" in names else "cpu" if "cpu_num" in names else "gpu"


def _table_job(row: _Row, unit: Unit, arrival_s: float) -> TraceJob:
    return TraceJob(
        name=row.text("u_id") or row.text("job_id") or str(row.line),
        user=row.text("user") or "unknown",
        queue=row.text("queue"),
        arrival_s=arrival_s,
        run_s=row.number("run_time"),
        limit_s=row.number("wall_time", default=0),
        size=row.whole(_UNITS[unit]),
        nodes=0 if unit == "node" else row.whole("node_num"),
        priority=row.whole("priority"),
    )


def _shown(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:60]}…")
