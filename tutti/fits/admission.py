"""Validates manifests as admission would: returns them with their defaults, or every error.

The API server validates them in a dry run with strict field validation, so that the cluster's
schemas, webhooks and quotas apply. Some errors are found without it: unknown fields of our kinds, a
minimum above the number of members, scheduler names that Tutti does not serve.
"""

from collections.abc import Collection, Iterator, Sequence
from typing import Any, Final

import msgspec

from shared.dialects.workloads import parts_of
from shared.kube.client import KubeClient
from shared.kube.errors import ApiError, Conflict, Forbidden
from shared.kube.resources import JOBS_VOLCANO, Resource
from tutti.cluster.crds import fit
from tutti.cluster.objects import clone
from tutti.manifests.crds import manifests
from tutti.why.kinds import Kind, discover

Json = dict[str, Any]

#: In an answer 403: RBAC refuses the request, and nothing was validated.
_NO_RIGHT: Final = "cannot create resource"
#: Errors of one object that are reported.
_ERRORS_MAX: Final = 20


class Admitted(msgspec.Struct, frozen=True, kw_only=True):
    #: The place of each in its file, and the object with its defaults.
    documents: tuple[tuple[str, Json], ...]
    #: The errors of admission, each with its place.
    errors: tuple[str, ...] = ()
    #: Objects that could not be validated, and why.
    notes: tuple[str, ...] = ()


async def admit(
    client: KubeClient | None,
    documents: Sequence[tuple[str, Json]],
    *,
    namespace: str,
    scheduler_names: Collection[str],
) -> Admitted:
    """Validate the objects and set their defaults; nothing is stored.

    Each has its place in its file, for messages. `namespace` is for objects without one. Without a
    client, only checks that need none are made. Raises KubeError.
    """
    errors = [
        f"{where}: {error}"
        for where, one in documents
        for error in local_errors(one, scheduler_names)
    ]
    if client is None:
        note = "no API server is available: only fields, minima and scheduler names were checked"
        return Admitted(documents=tuple(documents), errors=tuple(errors), notes=(note,))
    kinds = await discover(client)
    made: list[tuple[str, Json]] = []
    notes: list[str] = []
    for where, one in documents:
        resource = _resource(one, kinds)
        if resource is None:
            kind = f"{one.get('kind')} of {one.get('apiVersion')}"
            errors.append(f"{where}: the API server serves no {kind}")
            continue
        place = (one.get("metadata") or {}).get("namespace") or namespace
        try:
            made.append((where, await _dry_run(client, resource, one, place)))
        except Forbidden as error:
            if _NO_RIGHT in error.message:
                notes.append(f"{where}: not checked by the API server: {error.message}")
                made.append((where, one))
            else:
                errors.append(f"{where}: {error.message}")
        except ApiError as error:
            if error.status >= 500:
                raise
            errors.append(f"{where}: {error.message}")
    return Admitted(documents=tuple(made), errors=tuple(dict.fromkeys(errors)), notes=tuple(notes))


async def _dry_run(client: KubeClient, resource: Resource, one: Json, namespace: str) -> Json:
    """The object as the API server would store it; unchanged if it already exists."""
    try:
        reply = await client.request(
            "POST",
            resource.path(namespace),
            params={"dryRun": "All", "fieldValidation": "Strict"},
            body=msgspec.json.encode(one),
        )
    except Conflict:
        return one
    found: Json = msgspec.json.decode(reply.body)
    return found


def _resource(one: Json, kinds: Sequence[Kind]) -> Resource | None:
    wanted = (one.get("apiVersion"), one.get("kind"))
    for kind in kinds:
        if (kind.resource.api_version, kind.resource.kind) == wanted:
            return kind.resource
    return None


def local_errors(one: Json, scheduler_names: Collection[str]) -> list[str]:
    """Errors of an object that do not depend on the cluster."""
    found = [*_unknown_fields(one), *_minimum(one), *_schedulers(one, scheduler_names)]
    return found[:_ERRORS_MAX]


def _unknown_fields(one: Json) -> Iterator[str]:
    group, _, version = str(one.get("apiVersion", "")).rpartition("/")
    for crd in manifests():
        spec = crd["spec"]
        if (spec["group"], spec["names"]["kind"]) != (group, one.get("kind")):
            continue
        for served in spec["versions"]:
            if served["name"] == version:
                # The fields that the API server would prune.
                pruned, _ = fit(served["schema"]["openAPIV3Schema"], clone(one))
                yield from (f'unknown field "{path}"' for path in pruned)


def _minimum(one: Json) -> Iterator[str]:
    group = str(one.get("apiVersion", "")).rpartition("/")[0]
    spec = one.get("spec")
    is_job = (one.get("kind"), group) == (JOBS_VOLCANO.kind, JOBS_VOLCANO.group)
    if not is_job or not isinstance(spec, dict):
        return
    replicas = sum(part.replicas for part in parts_of(JOBS_VOLCANO.kind, group, spec))
    least = spec.get("minAvailable")
    if isinstance(least, int) and least > replicas:
        yield f"spec.minAvailable: {least} is greater than the replicas of all tasks, {replicas}"


def _schedulers(one: Json, scheduler_names: Collection[str]) -> Iterator[str]:
    """Explicit scheduler names that Tutti does not serve. Where there is none, an operator may set
    one later.
    """
    named = sorted(set(_scheduler_names_in(one.get("spec"))) - set(scheduler_names))
    for name in named:
        served = ", ".join(scheduler_names)
        yield f"schedulerName {name} is not served by Tutti, which serves {served}"


def _scheduler_names_in(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            yield from _scheduler_names_in(item)
    elif isinstance(value, dict):
        for name, item in value.items():
            if name == "schedulerName" and isinstance(item, str) and item:
                yield item
            elif name != "status":
                yield from _scheduler_names_in(item)
