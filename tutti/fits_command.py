"""`tutti fits`: whether the gangs of manifests would fit now."""

import sys
from collections.abc import Sequence
from functools import cache
from typing import Any, Final, TypeAlias

import click
from rich.console import Console
from rich.text import Text

from shared.admission.parts import text_at
from shared.contracts.questions import impossible_words
from shared.contracts.visibility import (
    API_VERSION,
    Displacement,
    Fit,
    FitStatus,
    ManifestsSpec,
    ObjectMeta,
)
from shared.dialects.discovery import kinds
from shared.dialects.manifests import InvalidManifest, flattened
from shared.kube.errors import ApiError
from tutti.api.access import Access, open_client
from tutti.api.failures import Refusal, run
from tutti.api.flags import access_flags, files_flag, namespace_flag, report_flag
from tutti.api.manifests import Content
from tutti.api.output import print_report
from tutti.client.asynchronous import AsyncClient
from tutti.terminal import count, report_console

Json: TypeAlias = dict[str, Any]

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
@access_flags
@report_flag
def fits(*, files: Sequence[Content], namespace: str, access: Access, output: str) -> None:
    """Report whether gangs would fit now, and on which nodes; otherwise what they lack, and which
    pods would be evicted for them. Nothing is created.

    The manifests are judged together, as the API judges a Fit: fields, minima, queues and scheduler
    names by the rules of admission, then each gang beside those before it.

    Exits with status 0 when all gangs would fit, 1 when one would have to wait, 2 when the
    manifests would be refused, with the list of errors, or when there is no answer.
    """
    fit = run(_fits(access, files, namespace))
    print_report(fit, output, lambda: show(fit, report_console()))
    sys.exit(0 if fit.status is not None and fit.status.fits else 1)


def show(fit: Fit, console: Console) -> None:
    namespace = fit.metadata.namespace if fit.metadata is not None else ""
    for warning in fit.status.warnings if fit.status is not None else ():
        console.print(Text(f"Warning: {warning}", "yellow"))
    for gang_fit in fit.status.gangs if fit.status is not None else ():
        gang = f"{gang_fit.namespace or namespace}/{gang_fit.name}"
        if gang_fit.fits:
            console.print(Text(f"{gang}: would fit now", "green"))
            named = [
                f"{each.members} on {each.node}" for each in gang_fit.placement[:_NODES_SHOWN_MAX]
            ]
            more = len(gang_fit.placement) - len(named)
            if named:
                others = f" and more on {more} other nodes" if more > 0 else ""
                console.print(Text(f"  {', '.join(named)}{others}"))
        elif gang_fit.ever:
            console.print(Text(f"{gang}: would have to wait: {gang_fit.message}", "yellow"))
            if gang_fit.displaces is not None:
                console.print(Text(f"  {_displaced(gang_fit.displaces)}", "yellow"))
        else:
            words = impossible_words(needs_nodes=gang_fit.needs_nodes)
            console.print(Text(f"{gang}: {words}: {gang_fit.message}", "red"))


def _displaced(displaced: Displacement) -> str:
    more = displaced.gangs.count - len(displaced.gangs.names)
    named = [*displaced.gangs.names, *([f"{more} other gangs"] if more > 0 else [])]
    verb = "preempted" if displaced.action == "preempt" else "reclaimed from other queues"
    pods = count(displaced.members, "pod")
    return f"once created, {pods} would be {verb} for it, of {', '.join(named)}"


async def _fits(access: Access, files: Sequence[Content], namespace: str) -> Fit:
    """Ask whether the gangs of the manifests would fit."""
    documents = [document for file in files for document in file.documents()]
    try:
        objects = [obj for _, obj in flattened(documents)]
    except InvalidManifest as error:
        raise Rejected([str(error)]) from None
    if not objects:
        raise Rejected(["there must be an object in the files"])
    async with open_client(access) as kube:
        namespace = _namespace_of(objects, namespace or kube.credentials.namespace)
        status = await _ask(AsyncClient(kube=kube), objects, namespace)
    return Fit(
        api_version=API_VERSION,
        kind="Fit",
        metadata=ObjectMeta(name="question", namespace=namespace),
        spec=ManifestsSpec(manifests=tuple(objects)),
        status=status,
    )


def _namespace_of(objects: Sequence[Json], default: str) -> str:
    """The namespace of all objects that are in one, if it is the same: the user may have no rights
    in the default one.
    """
    places = {
        text_at(obj, "metadata", "namespace") or default
        for obj in objects
        if obj["kind"] not in _kinds_of_cluster()
    }
    return places.pop() if len(places) == 1 else default


@cache
def _kinds_of_cluster() -> frozenset[str]:
    """Kinds without a namespace, as far as they are known here."""
    return frozenset(kind.resource.kind for kind in kinds() if not kind.resource.namespaced)


async def _ask(client: AsyncClient, objects: Sequence[Json], namespace: str) -> FitStatus:
    try:
        return await client.fits(objects, namespace=namespace)
    except ApiError as error:
        if error.status != _INVALID:
            raise
        errors = [cause.message for cause in error.details.causes] or [error.message]
        raise Rejected(errors) from None
