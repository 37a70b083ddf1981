"""`tutti job run`, `vcctl job run`, `vsub`: a Job from flags or from a file, and `--wait`, which
shows its progress: phase, counts, and the pending reason.

On a terminal one line is updated in place; elsewhere every change is a line of its own.
"""

import asyncio
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias, assert_never

import click
import msgspec

from shared.kube.client import KubeClient
from shared.kube.errors import KubeError
from shared.kube.quantities import QuantityError, amount
from shared.kube.resources import JOBS_VOLCANO, PODGROUPS_VOLCANO
from shared.model.invariants import InvariantViolation
from tutti.api.access import Access, open_namespace
from tutti.api.failures import Refusal, fail
from tutti.api.fetches import follow, named
from tutti.api.flags import Flag, gathered
from tutti.api.manifests import Content, create, read
from tutti.api.objects import (
    Object,
    name_of,
    namespace_of,
    new_object,
    number,
    text,
    why_unschedulable,
)
from tutti.api.output import Format, Printer, echo
from tutti.job.view import FINAL_PHASES, layout, phase, replicas

Goal: TypeAlias = Literal["running", "finished"]

#: A gang that fits is bound within this time, so its pending reason is shown only afterwards.
_PATIENCE_S: Final = 2.0
#: Final phases of a Job that has not succeeded.
_LOST: Final = FINAL_PHASES - {"Completed"}


class Progress:
    """Shows the state of each Job, in place on a terminal."""

    def __init__(
        self, *, terminal: bool | None = None, out: Callable[[str], None] | None = None
    ) -> None:
        self._terminal = sys.stdout.isatty() if terminal is None else terminal
        self._out = out or (lambda line: click.echo(line, nl=False))
        self._last: dict[str, str] = {}
        self._open = False

    def show(self, name: str, line: str) -> None:
        """Show the present state of one Job, if it has changed."""
        if self._last.get(name) == line:
            return
        self._last[name] = line
        if self._terminal and len(self._last) == 1:
            self._out(f"\r\x1b[K{line}")
            self._open = True
        else:
            self.close()
            self._out(f"{line}\n")

    def close(self) -> None:
        """End the line that is open."""
        if self._open:
            self._out("\n")
            self._open = False


async def wait(
    client: KubeClient, jobs: Sequence[Object], goal: Goal, timeout_s: float | None = None
) -> bool:
    """Wait until each Job has reached the goal or cannot reach it, or until the timeout; return
    whether all reached it. Raises KubeError.
    """
    progress = Progress()
    try:
        async with asyncio.timeout(timeout_s), asyncio.TaskGroup() as group:
            waiting = [
                group.create_task(_Waiting(client, job, goal, progress).run(), name=name_of(job))
                for job in jobs
            ]
        return all(task.result() for task in waiting)
    except TimeoutError:
        progress.close()
        names = ", ".join(name_of(job) for job in jobs)
        echo(f"{names}: not {goal} within {timeout_s:g} s; nothing was deleted")
        return False
    finally:
        progress.close()


class _Waiting:
    """Follows one Job until it reaches the goal."""

    def __init__(self, client: KubeClient, job: Object, goal: Goal, progress: Progress) -> None:
        self._client = client
        self._job = job
        self._goal: Goal = goal
        self._progress = progress
        self._why = ""
        self._show_reason = False

    async def run(self) -> bool:
        """Whether it reached the goal."""
        following = asyncio.create_task(self._follow_group(), name="podgroup")
        timer = asyncio.get_running_loop().call_later(_PATIENCE_S, self._on_patience_over)
        try:
            async for kind, job in follow(self._client, named(JOBS_VOLCANO, self._job)):
                if text(job, "metadata.uid") != text(self._job, "metadata.uid"):
                    continue
                self._job = job
                reached = "gone" if kind == "DELETED" else verdict(job, self._goal)
                self._show()
                if reached == "gone":
                    self._progress.show(name_of(job), f"{name_of(job)}: deleted")
                    return False
                if reached != "not yet":
                    return reached == "yes"
            raise InvariantViolation("watch of a Job", "must not end by itself")
        finally:
            timer.cancel()
            following.cancel()
            await asyncio.wait([following])

    async def _follow_group(self) -> None:
        """Keep the pending reason of the Job's PodGroup, if the user may read it."""
        group = {
            "metadata": {
                "name": f"{name_of(self._job)}-{text(self._job, 'metadata.uid')}",
                "namespace": namespace_of(self._job),
            }
        }
        try:
            async for _, group_now in follow(self._client, named(PODGROUPS_VOLCANO, group)):
                self._why = why_unschedulable(group_now)
                self._show()
        except KubeError:
            self._why = ""

    def _on_patience_over(self) -> None:
        self._show_reason = True
        self._show()

    def _show(self) -> None:
        why = self._why if self._show_reason else ""
        self._progress.show(name_of(self._job), sentence(self._job, why))


def verdict(job: Object, goal: Goal) -> Literal["yes", "no", "not yet"]:
    """Whether a Job in this state has reached the goal: "no" if it never will by itself."""
    now = phase(job)
    if now in _LOST:
        return "no"
    match goal:
        case "finished":
            return "yes" if now == "Completed" else "not yet"
        case "running":
            return "yes" if now in {"Running", "Completing", "Completed"} else "not yet"
        case _:
            assert_never(goal)


def sentence(job: Object, why: str) -> str:
    """The state of a Job in one line."""
    now = phase(job) or "not yet seen by a controller"
    counts = [
        f"{number(job, f'status.{key}')} {key}"
        for key in ("pending", "running", "succeeded", "failed")
        if number(job, f"status.{key}")
    ]
    parts = [f"{name_of(job)}: {now}", f"{replicas(job)} pods", *counts]
    message = text(job, "status.state.message")
    if now in _LOST and message:
        parts.append(message)
    elif why and now in {"Pending", "not yet seen by a controller"}:
        parts.append(why)
    return ", ".join(parts)


#: The label that Volcano's tools set on the pods of a Job that is created from flags.
NAME_LABEL: Final = "job.volcano.sh"
_RESOURCES: Final = "cpu=1000m,memory=100Mi"


class JobFlags(msgspec.Struct, frozen=True, kw_only=True):
    """The flags that describe a Job."""

    image: str
    #: `minAvailable`: the number of pods that must run together.
    minimum: int
    replicas: int
    #: `cpu=1,memory=1Gi`, for each pod.
    requests: str
    limits: str
    scheduler: str
    #: () for the image's.
    command: tuple[str, ...] = ()


def job_flags(*, from_environment: bool = False) -> Flag:
    """`--image` to `--command`, given to the function as `options`; with defaults from the
    variables that Volcano's Slurm-like programs read, if that is requested.
    """

    def preset(variable: str, default: str) -> dict[str, Any]:
        known = {"default": default, "show_default": True}
        return known | ({"envvar": variable, "show_envvar": True} if from_environment else {})

    return gathered(
        JobFlags,
        "options",
        click.option(
            "--image", "-i", help="Container image.", **preset("VOLCANO_DEFAULT_IMAGE", "busybox")
        ),
        _count_flag("--min", "-m", "minimum", "Number of pods that must run together."),
        _count_flag("--replicas", "-r", "replicas", "Number of pods."),
        click.option(
            "--requests", "-R", default=_RESOURCES, show_default=True, help="Requests of each pod."
        ),
        click.option(
            "--limits", "-L", default=_RESOURCES, show_default=True, help="Limits of each pod."
        ),
        click.option(
            "--scheduler",
            "-S",
            metavar="NAME",
            help="Scheduler of the pods.",
            **preset("VOLCANO_SCHEDULER_NAME", "volcano"),
        ),
        click.option(
            "--command",
            "-c",
            default="",
            callback=_split_command,
            help="Command of the container, in shell syntax.",
        ),
    )


def _count_flag(name: str, letter: str, field: str, meaning: str) -> Flag:
    return click.option(
        name,
        letter,
        field,
        type=click.IntRange(0),
        default=1,
        show_default=True,
        metavar="N",
        help=meaning,
    )


def _split_command(ctx: click.Context, _: click.Parameter, given: str) -> tuple[str, ...]:
    """The words of a command, as a shell splits it; an unclosed quote ends the program."""
    try:
        return tuple(shlex.split(given))
    except ValueError as error:
        if ctx.resilient_parsing:
            return ()
        fail(f"--command {given}: {error}")


def manifest(options: JobFlags, name: str, queue: str = "") -> Object:
    """The Job; "" is the default queue. Raises Refusal."""
    if not name:
        raise Refusal("job name cannot be left blank: give --name, or a manifest with -f")
    if options.minimum > options.replicas:
        raise Refusal(
            f"--min {options.minimum} is more than --replicas {options.replicas}: the Job "
            "could never run"
        )
    container: Object = {
        "name": name,
        "image": options.image,
        "imagePullPolicy": "IfNotPresent",
        "resources": _resources(options),
    }
    if options.command:
        container["command"] = list(options.command)
    spec: Object = {
        "minAvailable": options.minimum,
        "schedulerName": options.scheduler,
        "tasks": [
            {
                "replicas": options.replicas,
                "template": {
                    "metadata": {"name": name, "labels": {NAME_LABEL: name}},
                    "spec": {"restartPolicy": "Never", "containers": [container]},
                },
            }
        ],
    }
    if queue:
        spec["queue"] = queue
    return new_object(JOBS_VOLCANO, {"name": name}, spec=spec)


def _resources(options: JobFlags) -> Object:
    amounts = {
        "requests": quantities("--requests", options.requests),
        "limits": quantities("--limits", options.limits),
    }
    return {key: dict(value) for key, value in amounts.items() if value}


def quantities(flag: str, given: str) -> Mapping[str, str]:
    """`cpu=1000m,memory=100Mi` as a map. Raises Refusal, which names the flag and the rule."""
    amounts: dict[str, str] = {}
    for item in given.split(",") if given else ():
        name, equals, quantity = item.partition("=")
        if not equals or not name or "=" in quantity:
            raise Refusal(f"{flag} {item}: must be RESOURCE=AMOUNT, such as cpu=500m")
        try:
            amount(name, quantity)
        except QuantityError as error:
            raise Refusal(f"{flag} {item}: {error}") from None
        amounts[name] = quantity
    return amounts


class Submission(msgspec.Struct, frozen=True, kw_only=True):
    """The flags of `tutti job run`."""

    access: Access
    #: Also for manifests without one; "" for the default one.
    namespace: str = ""
    #: Manifests; with at least one, the next three attributes are ignored.
    files: Sequence[Content] = ()
    name: str = ""
    options: JobFlags
    queue: str = ""
    #: Whether to wait until the Job has reached the goal, and for how long at most.
    wait: bool = False
    goal: Goal = "finished"
    timeout_ms: int | None = None
    #: Have the API server validate the Job without storing it.
    dry_run: bool = False
    #: Format of the created Job; "text" for a sentence.
    output: Format = "text"


async def run_job(submission: Submission) -> bool:
    """Create the Jobs, and wait for them if requested; return False when one did not reach the
    goal. Raises KubeError, and Refusal when the flags or files do not make a Job.
    """
    if submission.dry_run and submission.wait:
        raise Refusal("--dry-run stores nothing, so --wait has nothing to wait for")
    manifests = (
        read(submission.files, JOBS_VOLCANO)
        if submission.files
        else [manifest(submission.options, submission.name, submission.queue)]
    )
    async with open_namespace(submission.access, submission.namespace) as (client, place):
        made = [await _created(client, each, place, submission) for each in manifests]
        if not submission.wait:
            return True
        timeout_s = None if submission.timeout_ms is None else submission.timeout_ms / 1000
        return await wait(client, made, submission.goal, timeout_s)


async def _created(client: KubeClient, job: Object, place: str, submission: Submission) -> Object:
    if submission.namespace and namespace_of(job) not in {"", submission.namespace}:
        raise Refusal(
            f"Job {name_of(job)} names the namespace {namespace_of(job)!r}, and --namespace "
            f"{submission.namespace!r}: leave one of them out"
        )
    made = await create(client, JOBS_VOLCANO, job, place, dry_run=submission.dry_run)
    if submission.output == "text":
        dry = " (server dry run)" if submission.dry_run else ""
        echo(f"run job {name_of(made)} successfully{dry}")
    else:
        Printer(JOBS_VOLCANO, layout(), submission.output).one(made)
    return made
