"""`tutti fits`: whether the gangs of manifests would fit now."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import IO, Any, Final, TypeAlias

import click
from rich.console import Console
from rich.text import Text

from shared.bus.connection import Bus
from shared.bus.errors import MessageTooLarge
from shared.contracts import codec, subjects
from shared.contracts.fit_rules import broken_rule
from shared.contracts.questions import impossible_words
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
from shared.dialects.manifests import InvalidManifest, expand, flattened
from shared.kube.errors import CredentialsError, TransportError
from shared.visible_objects import build_gang_fit
from shared.yaml_documents import InvalidYaml, read_documents
from tutti.api.access import open_client
from tutti.api.failures import Refusal, run
from tutti.api.flags import files_flag, report_flag, scheduler_names_flag
from tutti.api.output import print_report
from tutti.client.asynchronous import AsyncClient
from tutti.fits.admission import Admitted, admit
from tutti.service_access import reached
from tutti.service_bus import ServiceBus, ask_standby, service_options

Json: TypeAlias = dict[str, Any]

#: A standby answers between two reads of its streams; a large gang takes it a while.
_ANSWER_S: Final = 10.0
#: Exit status when there is no answer.
_NO_ANSWER: Final = 2
_NODES_SHOWN_MAX: Final = 5


class Rejected(Refusal):
    """Admission would refuse the manifests; one line per error."""

    def __init__(self, errors: Sequence[str]) -> None:
        super().__init__("\n  ".join(["admission would refuse this:", *errors]))


@click.command()
@files_flag("Manifest file; - for standard input; repeatable.")
@click.option("--namespace", "-n", default="default", show_default=True, metavar="NAME")
@scheduler_names_flag("Scheduler names that Tutti serves in this cluster; repeatable.")
@service_options
@report_flag
def fits(
    *,
    files: Sequence[IO[str]],
    namespace: str,
    services: ServiceBus,
    scheduler_names: tuple[str, ...],
    output: str,
) -> None:
    """Report whether gangs would fit now, and on which nodes; otherwise what they lack, and which
    pods would be evicted for them. Nothing is created.

    The manifests are first validated and defaulted as admission would, by a dry run with strict
    field validation, if the API server can be reached and the user may create the objects.

    Exits with status 0 when all gangs would fit, 1 when one would have to wait, 2 when admission
    would refuse one, with the list of errors, or when there is no answer.
    """
    found = run(_fits(services, files, namespace, scheduler_names), status=_NO_ANSWER)
    whole = found[0] if len(found) == 1 else {"apiVersion": "v1", "kind": "List", "items": found}
    print_report(whole, output, lambda: show(found, Console()))
    sys.exit(0 if all(one.fits for _, one in answers(found)) else 1)


def answers(found: Iterable[Fit]) -> Iterator[tuple[str, GangFit]]:
    """Each gang's namespace, and the answer for it."""
    for fit in found:
        namespace = fit.metadata.namespace if fit.metadata is not None else ""
        for one in fit.status.gangs if fit.status is not None else ():
            yield namespace, one


def show(found: Iterable[Fit], console: Console) -> None:
    for namespace, one in answers(found):
        gang = f"{namespace}/{one.name}"
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
    pods = f"{found.members} pod{'' if found.members == 1 else 's'}"
    return f"once created, {pods} would be {verb} for it, of {', '.join(named)}"


async def _fits(
    services: ServiceBus,
    files: Sequence[IO[str]],
    namespace: str,
    scheduler_names: Sequence[str],
) -> list[Fit]:
    """Validate the manifests, and ask whether their gangs would fit: a Fit per namespace."""
    try:
        documents = [one for file in files for one in read_documents(file.read())]
    except (InvalidYaml, UnicodeDecodeError) as error:
        raise Refusal(str(error)) from None
    try:
        flat = list(flattened(documents))
    except InvalidManifest as error:
        raise Refusal(str(error)) from None
    admitted = await _admitted(services, flat, namespace, scheduler_names)
    for note in admitted.notes:
        click.echo(f"tutti: {note}", err=True)
    if admitted.errors:
        raise Rejected(admitted.errors)
    objects = [one for _, one in admitted.documents]
    async with reached(services, "tutti-fits", QUEUES) as way:
        if isinstance(way, AsyncClient):
            found = await _by_api(way, objects, namespace)
        else:
            found = await _by_nats(way, objects, namespace, scheduler_names)
    refused = [f"{place}/{one.name}: {one.message}" for place, one in answers(found) if one.refused]
    if refused:
        raise Rejected(refused)
    return found


async def _admitted(
    services: ServiceBus,
    documents: Sequence[tuple[str, Json]],
    namespace: str,
    scheduler_names: Sequence[str],
) -> Admitted:
    names = tuple(scheduler_names)
    try:
        async with open_client(services.access) as client:
            return await admit(client, documents, namespace=namespace, scheduler_names=names)
    except (CredentialsError, TransportError):
        return await admit(None, documents, namespace=namespace, scheduler_names=names)


async def _by_api(client: AsyncClient, objects: Sequence[Json], namespace: str) -> list[Fit]:
    """A Fit per namespace."""
    placed: dict[str, list[Json]] = {}
    for one in objects:
        place = (one.get("metadata") or {}).get("namespace") or namespace
        placed.setdefault(place, []).append(one)
    return [
        _fit(place, found, await client.fits(found, namespace=place))
        for place, found in placed.items()
    ]


async def _by_nats(
    bus: Bus, objects: Sequence[Json], namespace: str, scheduler_names: Sequence[str]
) -> list[Fit]:
    """The same, with a question per gang."""
    try:
        questions = expand(objects, namespace=namespace, scheduler_names=scheduler_names)
    except InvalidManifest as error:
        raise Refusal(str(error)) from None
    decode = codec.decode_fit_answer
    gangs: dict[str, list[GangFit]] = {}
    for one in questions:
        gang = f"{one.group.namespace}/{one.group.name}"
        broken = broken_rule(one)
        if broken:
            raise Refusal(f"{gang}: {broken}")
        try:
            answer = await ask_standby(bus, subjects.ASK_FIT, one, decode, timeout_s=_ANSWER_S)
        except MessageTooLarge as error:
            raise Refusal(f"{gang}: its pods are too large: {error}") from None
        if answer.failure is not None:
            raise Refusal(f"{gang}: {answer.sentence}")
        gangs.setdefault(one.group.namespace, []).append(
            build_gang_fit(one.group.name, len(one.pods), answer, None)
        )
    return [
        _fit(
            place,
            [
                one
                for one in objects
                if ((one.get("metadata") or {}).get("namespace") or namespace) == place
            ],
            FitStatus(fits=all(one.fits for one in found), gangs=tuple(found)),
        )
        for place, found in gangs.items()
    ]


def _fit(namespace: str, manifests: Sequence[Json], status: FitStatus) -> Fit:
    return Fit(
        api_version=API_VERSION,
        kind="Fit",
        metadata=ObjectMeta(name="question", namespace=namespace),
        spec=ManifestsSpec(manifests=tuple(manifests)),
        status=status,
    )
