"""Reads a cluster with list requests only; kinds that may not be listed are reported. Its objects
are judged by the rules of admission, and its configurations by the reader of the planner in a
process of its own: commands never import services.
"""

import asyncio
import contextlib
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeVar

import msgspec

from shared.admission.judgement import admit, declared_queues
from shared.admission.queue_tree import QueueTree
from shared.admission.rules import ReferenceObjects
from shared.dialects.discovery import readers
from shared.dialects.protocol import ReadingContext
from shared.dialects.workloads import declared
from shared.kube.client import KubeClient
from shared.kube.decoding import without_nulls
from shared.kube.errors import Forbidden, KubeError, NotFound, Unauthorized
from shared.kube.resources import (
    CONFIGMAPS,
    CUSTOM_RESOURCE_DEFINITIONS,
    DEPLOYMENTS,
    JOBS_VOLCANO,
    MUTATING_WEBHOOKS,
    PODS,
    RESOURCE_CLAIMS,
    VALIDATING_WEBHOOKS,
    Resource,
)
from shared.model.devices import ResourceClaim
from shared.model.objects import Pod, PodGroup
from tutti.api.failures import Refusal
from tutti.api.fetches import Wanted, at_once, fetch
from tutti.api.objects import Object, field, name_of, namespace_of, text
from tutti.migrate.cluster_facts import (
    CHECKED_KINDS,
    GROUPS,
    OTHER_GROUPS,
    ClusterFacts,
    PolicyText,
    Refused,
)
from tutti.up.other_schedulers import check_cluster, find_other_schedulers
from tutti.up.presence import is_dead

_PLANNER: Final = "services.gang_planner.checking"


class _CheckedPolicy(msgspec.Struct, frozen=True, kw_only=True):
    error: str
    warnings: tuple[str, ...]


def find_refused(
    objects: Sequence[tuple[Resource, Object]], scheduler_names: tuple[str, ...]
) -> tuple[Refused, ...]:
    """The objects that the webhook's rules would refuse if they were created now; the queues among
    them exist for all of them.
    """
    # Items of a list have no kind.
    stored = [
        {**without_nulls(obj), "apiVersion": resource.api_version, "kind": resource.kind}
        for resource, obj in objects
    ]
    known = ReferenceObjects(
        scheduler_names=scheduler_names, queues=QueueTree(declared_queues(stored))
    )
    judged = [(obj, admit(obj, known, with_fields=False).errors) for obj in stored]
    return tuple(
        Refused(kind=obj["kind"], name=_title(obj), errors=tuple(errors))
        for obj, errors in judged
        if errors
    )


async def check_policy(policy: PolicyText) -> PolicyText:
    """The configuration with the planner's error and warnings. Raises Refusal when the process ends
    with an error, which is a bug.
    """
    done = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-m", _PLANNER],
        input=policy.text.encode(),
        capture_output=True,
        check=False,
    )
    if done.returncode:
        last = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
        raise Refusal(f"{_PLANNER} ended with status {done.returncode}: {' '.join(last)}")
    checked = msgspec.json.decode(done.stdout, type=_CheckedPolicy)
    return msgspec.structs.replace(policy, error=checked.error, warnings=checked.warnings)


def _title(obj: Object) -> str:
    namespace = namespace_of(obj)
    return f"{namespace}/{name_of(obj)}" if namespace else name_of(obj)


_LISTED: Final = (
    PODS,
    RESOURCE_CLAIMS,
    DEPLOYMENTS,
    CUSTOM_RESOURCE_DEFINITIONS,
    VALIDATING_WEBHOOKS,
    MUTATING_WEBHOOKS,
    *OTHER_GROUPS,
    *CHECKED_KINDS,
)
#: A Deployment with one of these in its name or images belongs to Volcano or kube-batch.
_THEIRS: Final = ("volcano", "vc-", "kube-batch")
_SCHEDULER_CONF: Final = "scheduler.conf"
_ADMISSION_CONF: Final = "admission.conf"
_ENDED: Final = frozenset({"Succeeded", "Failed"})
_OVER: Final = frozenset({"Completed", "Failed", "Aborted", "Terminated"})

M = TypeVar("M", Pod, PodGroup, ResourceClaim)


async def read_cluster(
    client: KubeClient, scheduler_names: tuple[str, ...], conf: PolicyText | None
) -> ClusterFacts:
    """Read everything that a check needs, if Tutti would serve these scheduler names.

    Args:
        client: Of the API server.
        scheduler_names: The names.
        conf: A scheduler configuration to check; None: those in the cluster.

    Raises:
        Refusal: The API server does not answer or refuses our credentials, or a check has failed.
    """
    checked = await check_cluster(client, scheduler_names)
    unreadable = set(checked.unreadable)
    objects = await at_once(_LISTED, lambda resource: _list(client, resource, unreadable))
    context = ReadingContext(scheduler_names=frozenset(scheduler_names))
    pods = _read(objects, (PODS,), Pod, context)
    policies, admission_files = await _configurations(
        client, objects[DEPLOYMENTS], conf, unreadable
    )
    stored = [(resource, obj) for resource in CHECKED_KINDS for obj in objects[resource]]
    names = {*scheduler_names, *(pod.scheduler_name for pod in pods if pod.scheduler_name)}
    return ClusterFacts(
        scheduler_names=scheduler_names,
        objects=objects,
        pods=tuple(pod for pod in pods if pod.phase not in _ENDED),
        groups=_read(objects, GROUPS, PodGroup, context),
        claims=_read(objects, (RESOURCE_CLAIMS,), ResourceClaim, context),
        templates=tuple(_templates(objects[JOBS_VOLCANO], context)),
        others=tuple(find_other_schedulers(checked, names, is_dead)),
        policies=tuple([await check_policy(policy) for policy in policies]),
        admission_files=admission_files,
        refused=find_refused(stored, scheduler_names),
        unreadable=tuple(sorted(unreadable)),
    )


async def _list(client: KubeClient, resource: Resource, unreadable: set[str]) -> list[Object]:
    try:
        return await fetch(client, Wanted(resource=resource))
    except NotFound:
        return []
    except (Forbidden, Unauthorized):
        unreadable.add(f"no right to list {resource.title}")
    except KubeError as error:
        unreadable.add(f"cannot list {resource.title}: {error}")
    return []


def _read(
    objects: dict[Resource, list[Object]],
    resources: Iterable[Resource],
    model: type[M],
    context: ReadingContext,
) -> tuple[M, ...]:
    """Objects as the watcher would read them; invalid ones are left to the webhook's rules."""
    read_objects: list[M] = []
    for resource in resources:
        for kind in readers().get(resource, ()):
            for obj in objects[resource]:
                with contextlib.suppress(msgspec.ValidationError):
                    read = kind.neutral_object(
                        msgspec.convert(without_nulls(obj), kind.decoded), context
                    )
                    if isinstance(read, model):
                        read_objects.append(read)
    return tuple(read_objects)


def _templates(jobs: Sequence[Object], context: ReadingContext) -> Iterator[tuple[str, Pod]]:
    """A pod of each shape that unfinished Jobs of our schedulers would create."""
    for job in jobs:
        name = text(job, "spec.schedulerName") or "volcano"
        if name not in context.scheduler_names or text(job, "status.state.phase") in _OVER:
            continue
        try:
            made = declared(job, uid=text(job, "metadata.uid"), context=context)
        except (ValueError, KeyError):
            # The webhook's rules report the error.
            continue
        shapes = {pod.shape: pod for pod in (made.pods if made is not None else ())}
        for pod in shapes.values():
            yield f"{namespace_of(job)}/{name_of(job)}", pod


async def _configurations(
    client: KubeClient,
    deployments: Sequence[Object],
    conf: PolicyText | None,
    unreadable: set[str],
) -> tuple[list[PolicyText], tuple[str, ...]]:
    """Texts for the scheduler, and names of admission configurations, in Volcano's Deployments."""
    policies = [] if conf is None else [conf]
    admission: list[str] = []
    mounted = dict.fromkeys(
        (namespace_of(deployment), name)
        for deployment in deployments
        if _theirs(deployment)
        for name in _mounts(deployment)
    )
    for namespace, name in mounted:
        try:
            reply = await client.request("GET", CONFIGMAPS.path(namespace, name))
        except NotFound:
            continue
        except KubeError as error:
            unreadable.add(f"cannot read ConfigMap {namespace}/{name}: {error}")
            continue
        data = field(msgspec.json.decode(reply.body), "data", {})
        for key, value in data.items():
            where = f"ConfigMap {namespace}/{name}, {key}"
            if key.endswith(_SCHEDULER_CONF) and conf is None:
                policies.append(PolicyText(where=where, text=str(value)))
            elif key.endswith(_ADMISSION_CONF):
                admission.append(where)
    return policies, tuple(admission)


def _theirs(deployment: Object) -> bool:
    containers = field(deployment, "spec.template.spec.containers", [])
    words = [name_of(deployment), *(str(container.get("image", "")) for container in containers)]
    return any(part in word.rpartition("/")[2] for word in words for part in _THEIRS)


def _mounts(deployment: Object) -> list[str]:
    volumes = field(deployment, "spec.template.spec.volumes", [])
    return [name for volume in volumes if (name := text(volume, "configMap.name"))]
