"""`tutti job run`: a Job from flags or from a file, and what becomes of it with `--wait`."""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from shared.kube.client import KubeClient
from shared.kube.quantities import QuantityError, amount
from shared.kube.resources import JOBS_VOLCANO
from tutti.api.access import Access, opened
from tutti.api.failing import Refusal
from tutti.api.flags import namespace_or_default
from tutti.api.manifests import create, read
from tutti.api.objects import Object, name_of, namespace_of
from tutti.api.output import Format, Printer, echo
from tutti.job.columns import layout
from tutti.job.waiting import Goal, wait

#: The label that Volcano's tools give the pods of a Job made from flags.
NAME_LABEL: Final = "job.volcano.sh"


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """What was asked for.

    Attributes:
        access: Who asks.
        namespace: As given; "" for the default one. Also for manifests that name none.
        files: Manifests; when there is one, the flags below do not count.
        name: Name of the Job.
        image: The container's image.
        minimum: How many pods must run together.
        replicas: How many pods.
        requests: `cpu=1,memory=1Gi`, for each pod.
        limits: The same.
        scheduler: Name of the scheduler.
        queue: Name of the queue; "" for the default one.
        command: The container's command; () for the image's.
        goal: What to wait for; None to end once it is created.
        timeout_s: How long to wait; None for as long as it takes.
        dry_run: Have everything checked and answered, and nothing stored.
        output: How to print what was created; "table" for a sentence.
    """

    access: Access
    namespace: str = ""
    files: tuple[str, ...] = ()
    name: str = ""
    image: str = "busybox"
    minimum: int = 1
    replicas: int = 1
    requests: str = ""
    limits: str = ""
    scheduler: str = "volcano"
    queue: str = ""
    command: tuple[str, ...] = ()
    goal: Goal | None = None
    timeout_s: float | None = None
    dry_run: bool = False
    output: Format = "table"


async def run_job(wish: Wish) -> bool:
    """Create what was asked for, and wait for it if that was asked too.

    Returns:
        Whether all went well: False when a Job that was waited for did not get there.

    Raises:
        Refusal: Flags or files that make no Job.
        KubeError: The API server refuses, or does not answer.
    """
    if wish.dry_run and wish.goal is not None:
        raise Refusal("--dry-run and --wait: nothing is stored that could be waited for")
    manifests = read(wish.files, JOBS_VOLCANO) if wish.files else [manifest(wish)]
    async with opened(wish.access) as client:
        place = namespace_or_default(wish.namespace, client.credentials.namespace)
        made = [await _created(client, each, place, wish) for each in manifests]
        if wish.goal is None:
            return True
        return await wait(client, made, wish.goal, wish.timeout_s)


async def _created(client: KubeClient, job: Object, place: str, wish: Wish) -> Object:
    if wish.namespace and namespace_of(job) not in {"", wish.namespace}:
        raise Refusal(
            f"Job {name_of(job)} names the namespace {namespace_of(job)!r}, and --namespace "
            f"{wish.namespace!r}: leave one of them out"
        )
    made = await create(client, JOBS_VOLCANO, job, place, dry_run=wish.dry_run)
    if wish.output == "table":
        dry = " (server dry run)" if wish.dry_run else ""
        echo(f"run job {name_of(made)} successfully{dry}")
    else:
        Printer(JOBS_VOLCANO, layout(), wish.output).one(made)
    return made


def manifest(wish: Wish) -> Object:
    """The Job that flags describe. Raises Refusal."""
    if not wish.name:
        raise Refusal("job name cannot be left blank: give --name, or a manifest with -f")
    if wish.minimum > wish.replicas:
        raise Refusal(
            f"--min {wish.minimum} is more than --replicas {wish.replicas}: it could never run"
        )
    container: Object = {
        "name": wish.name,
        "image": wish.image,
        "imagePullPolicy": "IfNotPresent",
        "resources": _resources(wish),
    }
    if wish.command:
        container["command"] = list(wish.command)
    spec: Object = {
        "minAvailable": wish.minimum,
        "schedulerName": wish.scheduler,
        "tasks": [
            {
                "replicas": wish.replicas,
                "template": {
                    "metadata": {"name": wish.name, "labels": {NAME_LABEL: wish.name}},
                    "spec": {"restartPolicy": "Never", "containers": [container]},
                },
            }
        ],
    }
    if wish.queue:
        spec["queue"] = wish.queue
    return {
        "apiVersion": JOBS_VOLCANO.api_version,
        "kind": JOBS_VOLCANO.kind,
        "metadata": {"name": wish.name},
        "spec": spec,
    }


def _resources(wish: Wish) -> Object:
    found = {
        "requests": quantities("--requests", wish.requests),
        "limits": quantities("--limits", wish.limits),
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
