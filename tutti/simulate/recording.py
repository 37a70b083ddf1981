"""A recording of one's own cluster as a trace: a bundle of `tutti bundle`, or one segment."""

import io
import tarfile
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from shared.contracts.simulation import (
    RecordedGang,
    RecordingQuestion,
    RecordingReport,
    SimulatedJob,
    SimulationPlan,
)
from shared.model.objects import Shape
from tutti.api.failures import Refusal
from tutti.simulate.plan import Planned, queues_of
from tutti.simulate.processes import ask
from tutti.simulate.trace import InvalidTrace, TraceJob

_SUFFIX: Final = ".tutti-recording"
_BYTES_MAX: Final = 1 << 30
#: Requests for CPUs are of thousandths.
MILLICPU: Final = "millicpu"


def is_recording(path: Path) -> bool:
    """Whether a file is a bundle, or a segment of a recording."""
    return path.name.endswith(_SUFFIX) or tarfile.is_tarfile(path)


async def read_recording(path: Path) -> RecordingReport:
    """Have the planner's program reproduce and read it. Raises Refusal."""
    with _segments(path) as segments:
        report = await ask(RecordingQuestion(segments=segments))
    if not isinstance(report, RecordingReport) or report.problem:
        raise Refusal(f"{path}: {getattr(report, 'problem', '')}")
    return report


@contextmanager
def _segments(path: Path) -> Iterator[tuple[str, ...]]:
    """Its segments as files, oldest first."""
    if not tarfile.is_tarfile(path):
        yield (str(path),)
        return
    with tempfile.TemporaryDirectory(prefix="tutti-simulate-") as folder:
        try:
            with tarfile.open(path) as tar:
                members = [each for each in tar if each.isfile() and each.name.endswith(_SUFFIX)]
                if not members:
                    raise Refusal(f"{path}: must have recordings, has none; see its manifest.json")
                if sum(each.size for each in members) > _BYTES_MAX:
                    raise Refusal(f"{path}: must have at most {_BYTES_MAX >> 20} MiB of recordings")
                files: list[str] = []
                # A name begins with the segment's instant.
                for each in sorted(members, key=lambda member: Path(member.name).name):
                    content = tar.extractfile(each) or io.BytesIO()
                    file = Path(folder, f"{len(files):06d}-{Path(each.name).name}")
                    file.write_bytes(content.read())
                    files.append(str(file))
        except (tarfile.TarError, EOFError, OSError) as error:
            raise Refusal(f"{path}: must be a whole archive: {error}") from None
        yield tuple(files)


def plan_of(report: RecordingReport) -> tuple[Planned, str]:
    """The plan of the recorded gangs on the recorded nodes, and the unit of sizes: GPUs, or
    thousandths of CPUs, whatever is scarcer. Raises InvalidTrace.
    """
    gangs = [gang for gang in report.gangs if gang.run_ms]
    if not gangs:
        raise InvalidTrace("must have a gang that ran in the recording")
    resource, capacity = _most_wanted(report, gangs)
    unit = MILLICPU if resource == "cpu" else "gpu"
    jobs = [_job(gang, resource) for gang in gangs]
    plan = SimulationPlan(
        configuration="",
        nodes=report.nodes,
        queues=queues_of(report.queues, {gang.queue for gang in gangs}),
        priority_classes=report.priority_classes,
        jobs=tuple(
            SimulatedJob(
                name=f"job-{place}",
                arrival_ms=gang.arrival_ms,
                run_ms=gang.run_ms,
                limit_s=gang.limit_s,
                queue=gang.queue,
                priority=gang.priority,
                members=gang.members,
            )
            for place, gang in enumerate(gangs)
        ),
    )
    span_s = jobs[-1].arrival_s - jobs[0].arrival_s
    work = sum(job.size * job.run_s for job in jobs)
    left_out = {}
    if len(gangs) < len(report.gangs):
        left_out["never bound in the recording"] = len(report.gangs) - len(gangs)
    load = work / capacity / span_s if span_s else 0.0
    return Planned(plan, jobs, capacity, pooled=False, load=load, left_out=left_out), unit


def _most_wanted(report: RecordingReport, gangs: Sequence[RecordedGang]) -> tuple[str, int]:
    """CPUs, or the resource of GPUs, of which the gangs use the largest part; and its capacity."""
    amounts = Counter[str]()
    for node in report.nodes:
        amounts.update(dict(node.allocatable))
    candidates = {name: amount for name, amount in amounts.items() if amount and _counts(name)}
    if not candidates:
        raise InvalidTrace("must have nodes with CPUs or GPUs")
    work = {
        name: sum(_size(gang, name) * gang.run_ms for gang in gangs) / amount
        for name, amount in candidates.items()
    }
    resource = max(sorted(work), key=lambda name: work[name])
    return resource, candidates[resource]


def _counts(resource: str) -> bool:
    return resource == "cpu" or "gpu" in resource


def _size(gang: RecordedGang, resource: str) -> int:
    requests = (
        (count, dict(msgspec.msgpack.decode(shape, type=Shape).requests))
        for count, shape in gang.members
    )
    return sum(count * amounts.get(resource, 0) for count, amounts in requests)


def _job(gang: RecordedGang, resource: str) -> TraceJob:
    return TraceJob(
        name=gang.name,
        user=gang.namespace,
        queue=gang.queue,
        arrival_s=gang.arrival_ms / 1000,
        run_s=gang.run_ms / 1000,
        limit_s=gang.limit_s,
        size=_size(gang, resource),
        priority=gang.priority,
    )
