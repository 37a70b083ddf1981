"""`tutti job run`, `vcctl job run`, `vsub`: a Job from flags or from a file, and `--wait`."""

import shlex
from collections.abc import Mapping, Sequence
from typing import Any, Final

import click
import msgspec

from shared.kube.client import KubeClient
from shared.kube.quantities import QuantityError, amount
from shared.kube.resources import JOBS_VOLCANO
from tutti.api.access import Access, open_namespace
from tutti.api.failures import Refusal, fail
from tutti.api.flags import Flag, gathered
from tutti.api.manifests import create, read
from tutti.api.objects import Object, name_of, namespace_of
from tutti.api.output import Format, Printer, echo
from tutti.job.columns import layout
from tutti.job.progress import Goal, wait

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
    return {
        "apiVersion": JOBS_VOLCANO.api_version,
        "kind": JOBS_VOLCANO.kind,
        "metadata": {"name": name},
        "spec": spec,
    }


def _resources(options: JobFlags) -> Object:
    found = {
        "requests": quantities("--requests", options.requests),
        "limits": quantities("--limits", options.limits),
    }
    return {key: dict(value) for key, value in found.items() if value}


def quantities(flag: str, given: str) -> Mapping[str, str]:
    """`cpu=1000m,memory=100Mi` as a map. Raises Refusal, which names the flag and the rule."""
    found: dict[str, str] = {}
    for item in _items(given):
        name, equals, quantity = item.partition("=")
        if not equals or not name or "=" in quantity:
            raise Refusal(f"{flag} {item}: must be RESOURCE=AMOUNT, such as cpu=500m")
        try:
            amount(name, quantity)
        except QuantityError as error:
            raise Refusal(f"{flag} {item}: {error}") from None
        found[name] = quantity
    return found


def _items(given: str) -> Sequence[str]:
    return given.split(",") if given else ()


class Submission(msgspec.Struct, frozen=True, kw_only=True):
    """The flags of `tutti job run`."""

    access: Access
    #: Also for manifests without one; "" for the default one.
    namespace: str = ""
    #: Manifests; with at least one, the next three attributes are ignored.
    files: tuple[str, ...] = ()
    name: str = ""
    options: JobFlags
    queue: str = ""
    #: Whether to wait until the Job has reached the goal, for at most `timeout_s`.
    wait: bool = False
    goal: Goal = "finished"
    timeout_s: float | None = None
    #: Have the API server validate the Job without storing it.
    dry_run: bool = False
    #: Format of the created Job; "table" for a sentence.
    output: Format = "table"


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
        return await wait(client, made, submission.goal, submission.timeout_s)


async def _created(client: KubeClient, job: Object, place: str, submission: Submission) -> Object:
    if submission.namespace and namespace_of(job) not in {"", submission.namespace}:
        raise Refusal(
            f"Job {name_of(job)} names the namespace {namespace_of(job)!r}, and --namespace "
            f"{submission.namespace!r}: leave one of them out"
        )
    made = await create(client, JOBS_VOLCANO, job, place, dry_run=submission.dry_run)
    if submission.output == "table":
        dry = " (server dry run)" if submission.dry_run else ""
        echo(f"run job {name_of(made)} successfully{dry}")
    else:
        Printer(JOBS_VOLCANO, layout(), submission.output).one(made)
    return made
