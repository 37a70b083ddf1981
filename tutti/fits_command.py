"""`tutti fits`: whether the gangs of manifests would fit now."""

import sys
from collections.abc import Sequence
from functools import cache
from typing import Any, Final, TypeAlias

import click
from rich.console import Console
from rich.text import Text

from shared.admission.judgement import Refused, known_queues, questions
from shared.admission.parts import text_at
from shared.bus.connection import Bus
from shared.bus.errors import MessageTooLarge
from shared.contracts import codec, subjects
from shared.contracts.questions import FitRequest, impossible_words
from shared.contracts.visibility import (
    API_VERSION,
    Displacement,
    Fit,
    FitStatus,
    GangFit,
    ManifestsSpec,
    ObjectMeta,
)
from shared.contracts.visibility_resources import QUEUES
from shared.dialects.discovery import kinds
from shared.dialects.manifests import InvalidManifest, flattened
from shared.kube.credentials import load
from shared.kube.errors import ApiError, CredentialsError
from shared.visible_objects import build_gang_fit
from tutti.api.failures import Refusal, run
from tutti.api.flags import files_flag, namespace_flag, report_flag, scheduler_names_flag
from tutti.api.manifests import Content
from tutti.api.output import print_report
from tutti.client.asynchronous import AsyncClient
from tutti.service_access import ServiceBus, ask_standby, reached, read_ledger, service_options
from tutti.terminal import count, report_console

Json: TypeAlias = dict[str, Any]

#: A standby answers between two reads of its streams; a large gang takes it a while.
_ANSWER_S: Final = 10.0
#: Status of the API for manifests that would be refused.
_INVALID: Final = 422
_NODES_SHOWN_MAX: Final = 5


class Rejected(Refusal):
    """The manifests would be refused, or ask for no gang; one line per error."""

    def __init__(self, errors: Sequence[str]) -> None:
        super().__init__("\n  ".join(["these manifests would be refused:", *errors]))


@click.command()
@files_flag()
@namespace_flag()
@scheduler_names_flag("Scheduler names that Tutti serves in this cluster; repeatable.")
@service_options
@report_flag
def fits(
    *,
    files: Sequence[Content],
    namespace: str,
    services: ServiceBus,
    scheduler_names: tuple[str, ...],
    output: str,
) -> None:
    """Report whether gangs would fit now, and on which nodes; otherwise what they lack, and which
    pods would be evicted for them. Nothing is created.

    The manifests are judged together, as the API judges a Fit: fields, minima, queues and scheduler
    names by the rules of admission, then each gang beside those before it.

    Exits with status 0 when all gangs would fit, 1 when one would have to wait, 2 when the
    manifests would be refused, with the list of errors, or when there is no answer.
    """
    found = run(_fits(services, files, namespace, scheduler_names))
    print_report(found, output, lambda: show(found, report_console()))
    sys.exit(0 if found.status is not None and found.status.fits else 1)


def show(found: Fit, console: Console) -> None:
    namespace = found.metadata.namespace if found.metadata is not None else ""
    for warning in found.status.warnings if found.status is not None else ():
        console.print(Text(f"Warning: {warning}", "yellow"))
    for one in found.status.gangs if found.status is not None else ():
        gang = f"{one.namespace or namespace}/{one.name}"
        if one.fits:
            console.print(Text(f"{gang}: would fit now", "green"))
            named = [f"{each.members} on {each.node}" for each in one.placement[:_NODES_SHOWN_MAX]]
            more = len(one.placement) - len(named)
            if named:
                others = f" and more on {more} other nodes" if more > 0 else ""
                console.print(Text(f"  {', '.join(named)}{others}"))
        elif one.ever:
            console.print(Text(f"{gang}: would have to wait: {one.message}", "yellow"))
            if one.displaces is not None:
                console.print(Text(f"  {_displaced(one.displaces)}", "yellow"))
        else:
            words = impossible_words(needs_nodes=one.needs_nodes)
            console.print(Text(f"{gang}: {words}: {one.message}", "red"))


def _displaced(found: Displacement) -> str:
    more = found.gangs.count - len(found.gangs.names)
    named = [*found.gangs.names, *([f"{more} other gangs"] if more > 0 else [])]
    verb = "preempted" if found.action == "preempt" else "reclaimed from other queues"
    pods = count(found.members, "pod")
    return f"once created, {pods} would be {verb} for it, of {', '.join(named)}"


async def _fits(
    services: ServiceBus,
    files: Sequence[Content],
    namespace: str,
    scheduler_names: Sequence[str],
) -> Fit:
    """Ask whether the gangs of the manifests would fit."""
    documents = [one for file in files for one in file.documents()]
    try:
        objects = [one for _, one in flattened(documents)]
    except InvalidManifest as error:
        raise Rejected([str(error)]) from None
    if not objects:
        raise Rejected(["there must be an object in the files"])
    namespace = _namespace_of(objects, namespace or await _namespace_of_context(services))
    async with reached(services, "tutti-fits", QUEUES) as way:
        if isinstance(way, AsyncClient):
            status = await _by_api(way, objects, namespace)
        else:
            status = await _by_nats(way, objects, namespace, scheduler_names)
    return Fit(
        api_version=API_VERSION,
        kind="Fit",
        metadata=ObjectMeta(name="question", namespace=namespace),
        spec=ManifestsSpec(manifests=tuple(objects)),
        status=status,
    )


async def _namespace_of_context(services: ServiceBus) -> str:
    """The namespace in which kubectl would create the objects."""
    try:
        return (await load(services.kubeconfig, services.context)).namespace
    except CredentialsError:
        return "default"


def _namespace_of(objects: Sequence[Json], default: str) -> str:
    """The namespace of all objects that are in one, if it is the same: the user may have no rights
    in the default one.
    """
    places = {
        text_at(one, "metadata", "namespace") or default
        for one in objects
        if one["kind"] not in _kinds_of_cluster()
    }
    return places.pop() if len(places) == 1 else default


@cache
def _kinds_of_cluster() -> frozenset[str]:
    """Kinds without a namespace, as far as they are known here."""
    return frozenset(one.resource.kind for one in kinds() if not one.resource.namespaced)


async def _by_api(client: AsyncClient, objects: Sequence[Json], namespace: str) -> FitStatus:
    try:
        return await client.fits(objects, namespace=namespace)
    except ApiError as error:
        if error.status != _INVALID:
            raise
        errors = [cause.message for cause in error.details.causes] or [error.message]
        raise Rejected(errors) from None


async def _by_nats(
    bus: Bus, objects: Sequence[Json], namespace: str, scheduler_names: Sequence[str]
) -> FitStatus:
    """The same answer from the planner itself, with a question per gang."""
    try:
        asked = questions(
            objects,
            namespace=namespace,
            scheduler_names=scheduler_names,
            queues=known_queues(await read_ledger(bus)),
        )
    except Refused as error:
        raise Rejected(error.errors) from None
    gangs = [await _answer(bus, one, namespace) for one in asked.gangs]
    refused = [
        f"{one.namespace or namespace}/{one.name}: {one.message}" for one in gangs if one.refused
    ]
    if refused:
        raise Rejected(refused)
    fits = all(one.fits for one in gangs)
    return FitStatus(fits=fits, gangs=tuple(gangs), warnings=tuple(asked.warnings))


async def _answer(bus: Bus, question: FitRequest, namespace: str) -> GangFit:
    """Raises Refusal: the planner cannot answer it."""
    group = question.group
    gang = f"{group.namespace}/{group.name}"
    try:
        answer = await ask_standby(
            bus, subjects.ASK_FIT, question, codec.decode_fit_answer, timeout_s=_ANSWER_S
        )
    except MessageTooLarge as error:
        raise Refusal(f"{gang}: its pods are too large: {error}") from None
    if answer.failure is not None:
        raise Refusal(f"{gang}: {answer.sentence}")
    other = group.namespace if group.namespace != namespace else ""
    return build_gang_fit(group.name, len(question.pods), answer, None, namespace=other)
