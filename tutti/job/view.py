"""A Job as text: the table of Jobs with the columns of Volcano, and `tutti job view`, a Job with
its tasks, its state and its Events.
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Final

import msgspec

from shared.kube.ages import since
from shared.kube.client import KubeClient
from shared.kube.errors import ApiError
from shared.kube.resources import CORE_EVENTS, JOBS_VOLCANO, PODGROUPS_VOLCANO
from tutti.api.fetches import Wanted, fetch, get
from tutti.api.flags import Selection
from tutti.api.objects import (
    Object,
    created,
    field,
    labels_of,
    name_of,
    namespace_of,
    number,
    text,
    why_unschedulable,
)
from tutti.api.output import Column, Format, Layout, Printer, echo

JOB_NAME_LABEL: Final = "volcano.sh/job-name"
_JOB_TYPE_LABEL: Final = "volcano.sh/job-type"

#: Phases that a Job does not leave by itself.
FINAL_PHASES: Final = frozenset({"Completed", "Failed", "Aborted", "Terminated"})


def phase(job: Object) -> str:
    """`status.state.phase`; "" until a controller has written it."""
    return text(job, "status.state.phase")


def queue(job: Object) -> str:
    return text(job, "spec.queue") or "default"


def replicas(job: Object) -> int:
    return sum(number(task, "replicas") for task in tasks(job))


def tasks(job: Object) -> list[Object]:
    listed = field(job, "spec.tasks", [])
    return [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []


def scheduler(job: Object) -> str:
    return text(job, "spec.schedulerName")


def job_type(job: Object) -> str:
    return labels_of(job).get(_JOB_TYPE_LABEL, "Batch")


def _count(title: str, key: str, width: int) -> Column:
    return Column(title=title, width=width, value=lambda job: number(job, f"status.{key}"))


_COLUMNS: Final = (
    Column(title="Name", value=name_of),
    Column(title="Creation", width=15, value=lambda job: created(job)[:10]),
    Column(title="Phase", width=12, value=phase, coloured=True),
    Column(title="JobType", width=12, value=job_type),
    Column(title="Replicas", width=12, value=replicas),
    _count("Min", "minAvailable", 6),
    _count("Pending", "pending", 10),
    _count("Running", "running", 10),
    _count("Succeeded", "succeeded", 12),
    _count("Failed", "failed", 10),
    _count("Unknown", "unknown", 12),
    _count("RetryCount", "retryCount", 10),
    Column(title="Queue", width=16, wide=True, value=queue),
    Column(title="Scheduler", width=12, wide=True, value=scheduler),
    Column(title="Reason", wide=True, value=lambda job: text(job, "status.state.reason")),
)


def layout(everywhere: bool = False) -> Layout:
    """The table; for several namespaces the namespace is the first column."""
    namespace = (Column(title="Namespace", value=namespace_of),) if everywhere else ()
    return Layout(columns=(*namespace, *_COLUMNS))


_COUNTS: Final = (
    ("Succeeded", "succeeded"),
    ("Pending", "pending"),
    ("Running", "running"),
    ("Failed", "failed"),
    ("Terminating", "terminating"),
    ("Unknown", "unknown"),
    ("RetryCount", "retryCount"),
    ("Min Available", "minAvailable"),
    ("Version", "version"),
)
_NONE: Final = "<none>"


async def view_job(selection: Selection, output: Format) -> None:
    """Print one Job. Raises Refusal, NotFound and other KubeErrors."""
    name = selection.single(JOBS_VOLCANO)
    async with selection.opened() as (client, place):
        job = await get(client, JOBS_VOLCANO, name, place)
        if output != "text":
            Printer(JOBS_VOLCANO, layout(), output).one(job)
            return
        # By UID: an earlier Job of the same name had Events of its own.
        selector = f"involvedObject.kind=Job,involvedObject.uid={text(job, 'metadata.uid')}"
        wanted = Wanted(resource=CORE_EVENTS, namespace=place, field_selector=selector)
        events = await fetch(client, wanted)
        why = await _why(client, job)
    for line in described(job, events, datetime.now(UTC), why):
        echo(line)


async def _why(client: KubeClient, job: Object) -> str:
    """The pending reason of the Job's gang; "" if it does not wait or the user may not read it."""
    name = f"{name_of(job)}-{text(job, 'metadata.uid')}"
    try:
        return why_unschedulable(await get(client, PODGROUPS_VOLCANO, name, namespace_of(job)))
    except ApiError:
        return ""


def described(job: Object, events: Sequence[Object], now: datetime, why: str = "") -> Iterator[str]:
    """The lines of the description; `why` is the pending reason of its gang."""
    yield from _head(job)
    yield "Spec:"
    yield _row(1, "Min Available:", number(job, "spec.minAvailable"), 19)
    yield _row(1, "Queue:", queue(job), 19)
    yield _row(1, "Scheduler Name:", text(job, "spec.schedulerName"), 19)
    yield _row(1, "Max Retry:", number(job, "spec.maxRetry"), 19)
    yield from _plugins(job)
    yield "  Tasks:"
    for task in tasks(job):
        yield from _task(task)
    yield from _status(job, why)
    yield from _events(events, now)


def _head(job: Object) -> Iterator[str]:
    yield _row(0, "Name:", name_of(job), 12)
    yield _row(0, "Namespace:", namespace_of(job), 12)
    yield _row(0, "Labels:", _map(labels_of(job)), 12)
    yield _row(0, "Annotations:", _map(field(job, "metadata.annotations", {})), 12)
    yield _row(0, "API Version:", text(job, "apiVersion"), 12)
    yield _row(0, "Kind:", text(job, "kind"), 12)
    yield "Metadata:"
    yield _row(1, "Creation Timestamp:", text(job, "metadata.creationTimestamp"), 19)
    yield _row(1, "Generate Name:", text(job, "metadata.generateName"), 19)
    yield _row(1, "Generation:", number(job, "metadata.generation"), 19)
    yield _row(1, "Resource Version:", text(job, "metadata.resourceVersion"), 19)
    yield _row(1, "UID:", text(job, "metadata.uid"), 19)


def _plugins(job: Object) -> Iterator[str]:
    yield "  Plugins:"
    for name, arguments in sorted(field(job, "spec.plugins", {}).items()):
        yield f"    {name.capitalize()}:\t[{' '.join(map(str, arguments or ()))}]"


def _task(task: Object) -> Iterator[str]:
    yield f"    Name:\t{text(task, 'name')}"
    yield f"    Replicas:\t{number(task, 'replicas')}"
    if field(task, "minAvailable") is not None:
        yield f"    Min Available:\t{number(task, 'minAvailable')}"
    if depends := field(task, "dependsOn.name", []):
        yield f"    Depends On:\t{', '.join(depends)}"
    yield "    Template:"
    yield "      Containers:"
    for container in field(task, "template.spec.containers", []):
        yield from _container(container)
    yield f"      Restart Policy:\t{text(task, 'template.spec.restartPolicy')}"


def _container(container: Object) -> Iterator[str]:
    yield f"        Name: \t{text(container, 'name')}"
    yield f"        Image:\t{text(container, 'image')}"
    for key in ("command", "args"):
        if words := field(container, key, []):
            yield f"        {key.capitalize()}:\t{' '.join(map(str, words))}"
    for port in field(container, "ports", []):
        name = text(port, "name")
        yield f"        Port:\t{number(port, 'containerPort')}{f' ({name})' if name else ''}"
    for key in ("limits", "requests"):
        if amounts := field(container, f"resources.{key}", {}):
            listed = ", ".join(f"{name}={amount}" for name, amount in amounts.items())
            yield f"        {key.capitalize()}:\t{listed}"


def _status(job: Object, why: str) -> Iterator[str]:
    yield "Status:"
    for title, key in _COUNTS:
        if count := number(job, f"status.{key}"):
            yield _row(1, f"{title}:", count, 14)
    yield "  State:"
    yield f"    Phase:\t{phase(job)}"
    for key in ("reason", "message"):
        if words := text(job, f"status.state.{key}"):
            yield f"    {key.capitalize()}:\t{words}"
    if why:
        yield f"    Waits For:\t{why}"
    if controlled := field(job, "status.controlledResources", {}):
        yield "  Controlled Resources:"
        for key, value in sorted(controlled.items()):
            yield f"    {key}: \t{value}"
    if conditions := field(job, "status.conditions", []):
        yield "  Conditions:"
        yield "    Status\tTransitionTime"
        for each in conditions:
            yield f"    {text(each, 'status')} \t{text(each, 'lastTransitionTime')}"


def _events(events: Sequence[Object], now: datetime) -> Iterator[str]:
    if not events:
        yield "Events: \t<none>"
        return
    yield "Events:"
    rule = "-------"
    for cells in [("Type", "Reason", "Age", "From", "Message"), (rule, rule, rule, rule, rule)]:
        yield _event_row(*cells)
    for event in sorted(events, key=_first_seen):
        source = text(event, "source.component") or text(event, "reportingComponent")
        yield _event_row(
            text(event, "type"),
            text(event, "reason"),
            _age(event, now),
            source,
            text(event, "message").strip(),
        )


def _event_row(kind: str, reason: str, age: str, source: str, message: str) -> str:
    return f"{kind:<15}\t{reason:<25}\t{age:<22}\t{source:<25}\t{message}"


def _first_seen(event: Object) -> str:
    return text(event, "firstTimestamp") or text(event, "eventTime")


def _age(event: Object, now: datetime) -> str:
    count = number(event, "count")
    first = since(_first_seen(event), now)
    if count <= 1:
        return first
    return f"{since(text(event, 'lastTimestamp'), now)} (x{count} over {first})"


def _row(level: int, title: str, value: object, width: int) -> str:
    return f"{'  ' * level}{title:<{width}}\t{value}"


def _map(mapping: object) -> str:
    return msgspec.json.encode(mapping).decode() if mapping else _NONE
