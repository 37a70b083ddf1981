"""`tutti fits`: whether the gangs of manifests would fit now."""

import sys
from collections.abc import Sequence
from typing import IO, Any, Final

import click
import msgspec
import yaml
from rich.console import Console
from rich.text import Text

from shared.bus.errors import MessageTooLarge
from shared.contracts import codec, subjects
from shared.contracts.fit_rules import broken_rule
from shared.contracts.questions import FitAnswer, FitRequest
from shared.dialects.manifests import InvalidManifest, expand, flattened
from shared.kube.errors import CredentialsError, TransportError
from tutti.api.access import open_client
from tutti.api.failures import Refusal, run
from tutti.api.flags import files_flag, report_flag, scheduler_names_flag
from tutti.api.output import print_report
from tutti.fits.admission import Admitted, admit
from tutti.service_bus import ServiceBus, ask_standby, service_options

#: A standby answers between two reads of its streams; a large gang takes it a while.
_ANSWER_S: Final = 10.0
#: Exit status when there is no answer.
_NO_ANSWER: Final = 2
_NODES_SHOWN_MAX: Final = 5
_GANGS_SHOWN_MAX: Final = 10


class Rejected(Refusal):
    """Admission would refuse the manifests; one line per error."""

    def __init__(self, errors: Sequence[str]) -> None:
        super().__init__("\n  ".join(["admission would refuse this:", *errors]))


class Fit(msgspec.Struct, frozen=True, kw_only=True):
    """The planner's answer for one gang."""

    gang: str
    members: int
    answer: FitAnswer


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
    print_report(found, output, lambda: show(found, Console()))
    sys.exit(0 if all(one.answer.fits for one in found) else 1)


def show(found: Sequence[Fit], console: Console) -> None:
    for one in found:
        answer = one.answer
        if answer.fits:
            console.print(Text(f"{one.gang}: would fit now", "green"))
            named = [f"{count} on {node}" for node, count in answer.where[:_NODES_SHOWN_MAX]]
            more = len(answer.where) - len(named)
            if named:
                others = f" and more on {more} other nodes" if more > 0 else ""
                console.print(Text(f"  {', '.join(named)}{others}"))
        elif answer.ever:
            console.print(Text(f"{one.gang}: would have to wait: {answer.sentence}", "yellow"))
            if answer.displaces:
                console.print(Text(f"  {_displaced(answer)}", "yellow"))
        else:
            console.print(Text(f"{one.gang}: can never run here: {answer.sentence}", "red"))


def _displaced(answer: FitAnswer) -> str:
    named = [f"{count} of {gang}" for gang, count in answer.displaces[:_GANGS_SHOWN_MAX]]
    more = len(answer.displaces) - len(named)
    others = f" and some of {more} other gangs" if more else ""
    verb = "preempted" if answer.displaces_by == "preempt" else "reclaimed from other queues"
    return f"once created, pods would be {verb} for it: {', '.join(named)}{others}"


async def _fits(
    services: ServiceBus,
    files: Sequence[IO[str]],
    namespace: str,
    scheduler_names: Sequence[str],
) -> list[Fit]:
    """Validate the manifests, expand them to gangs, ask the standby planner."""
    try:
        documents = [one for file in files for one in yaml.safe_load_all(file.read())]
    except yaml.YAMLError as error:
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
    try:
        questions = expand(objects, namespace=namespace, scheduler_names=scheduler_names)
    except InvalidManifest as error:
        raise Refusal(str(error)) from None
    found = await _ask(services, questions)
    refused = [f"{one.gang}: {one.answer.sentence}" for one in found if one.answer.refused]
    if refused:
        raise Rejected(refused)
    return found


async def _admitted(
    services: ServiceBus,
    documents: Sequence[tuple[str, dict[str, Any]]],
    namespace: str,
    scheduler_names: Sequence[str],
) -> Admitted:
    names = tuple(scheduler_names)
    try:
        async with open_client(services.access) as client:
            return await admit(client, documents, namespace=namespace, scheduler_names=names)
    except (CredentialsError, TransportError):
        return await admit(None, documents, namespace=namespace, scheduler_names=names)


async def _ask(services: ServiceBus, questions: Sequence[FitRequest]) -> list[Fit]:
    found: list[Fit] = []
    decode = codec.decode_fit_answer
    async with services.connected("tutti-fits") as bus:
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
            found.append(Fit(gang=gang, members=len(one.pods), answer=answer))
    return found
