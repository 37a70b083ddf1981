"""`tutti fits` as it is typed."""

import asyncio
import sys
from collections.abc import Sequence
from typing import IO, Any, Final

import click
import msgspec
import yaml
from rich.console import Console
from rich.text import Text

from shared.bus.errors import BusError, NoAnswer
from shared.bus.questions import ask
from shared.contracts import codec, subjects
from shared.contracts.questions import FitAnswer, FitRequest
from shared.kube.client import KubeClient
from shared.kube.credentials import load
from shared.kube.errors import CredentialsError, KubeError, TransportError
from tutti.fits.admission import Admitted, admit
from tutti.fits.expanding import BadManifest, expand, flattened
from tutti.service_bus import NotReachable, ServiceBus, service_options
from tutti.up.options import SCHEDULER_NAMES

#: A standby answers between two looks at its streams; a large gang takes it a while.
_ANSWER_S: Final = 10.0
_NODES_SHOWN_MAX: Final = 5
_GANGS_SHOWN_MAX: Final = 10


class Rejected(Exception):
    """Admission would refuse the manifests; the arguments are the errors."""


class Fit(msgspec.Struct, frozen=True, kw_only=True):
    """What is said of one gang."""

    gang: str
    members: int
    answer: FitAnswer


@click.command()
@click.option(
    "--filename",
    "-f",
    "files",
    multiple=True,
    required=True,
    type=click.File(),
    help="Manifests; - is the standard input; repeatable.",
)
@click.option("--namespace", "-n", default="default", show_default=True, metavar="NAME")
@click.option(
    "--scheduler-name",
    "scheduler_names",
    multiple=True,
    default=SCHEDULER_NAMES,
    show_default=True,
    metavar="NAME",
    help="Names that Tutti serves on this cluster; repeatable.",
)
@service_options
@click.option("--output", "-o", type=click.Choice(["text", "json"]), default="text")
def fits(
    *,
    files: Sequence[IO[str]],
    namespace: str,
    suite: ServiceBus,
    scheduler_names: tuple[str, ...],
    output: str,
) -> None:
    """Say whether gangs would fit now, and where, or what is missing, and whose pods would be
    evicted for them. Nothing is created.

    The manifests are checked first as admission would, and get their defaults: by a dry run with
    strict field validation where an API server can be reached and the user may create them.

    Ends with status 0 when all would fit, 1 when one would have to wait, 2 when admission would
    refuse one, with the list of errors, or when the question cannot be answered.
    """
    try:
        documents = [one for file in files for one in yaml.safe_load_all(file.read())]
        found = asyncio.run(_fits(suite, documents, namespace, scheduler_names))
    except Rejected as rejected:
        _fail("\n  ".join(["admission would refuse this:", *rejected.args]))
    except NoAnswer:
        _fail("no standby of the planner answers")
    except (BadManifest, yaml.YAMLError, BusError, KubeError, OSError, NotReachable) as error:
        _fail(str(error))
    else:
        if output == "json":
            click.echo(msgspec.json.format(msgspec.json.encode(found)).decode())
        else:
            show(found, Console())
        sys.exit(0 if all(one.answer.fits for one in found) else 1)


def show(found: Sequence[Fit], console: Console) -> None:
    """Print answers for people."""
    for one in found:
        answer = one.answer
        if answer.fits:
            console.print(Text(f"{one.gang}: would fit now", "green"))
            shown = [f"{count} on {node}" for node, count in answer.where[:_NODES_SHOWN_MAX]]
            more = len(answer.where) - len(shown)
            if shown:
                others = f" and more on {more} other nodes" if more > 0 else ""
                console.print(Text(f"  {', '.join(shown)}{others}"))
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
    suite: ServiceBus, documents: Sequence[Any], namespace: str, scheduler_names: Sequence[str]
) -> list[Fit]:
    """Check, expand, ask.

    Raises:
        Rejected: Admission would refuse an object, or a gang's queue.
    """
    admitted = await _admitted(suite, list(flattened(documents)), namespace, scheduler_names)
    for note in admitted.notes:
        click.echo(f"tutti: {note}", err=True)
    if admitted.errors:
        raise Rejected(*admitted.errors)
    objects = [one for _, one in admitted.documents]
    asked = expand(objects, namespace=namespace, scheduler_names=scheduler_names)
    found = await _ask(suite, asked)
    refused = [f"{one.gang}: {one.answer.sentence}" for one in found if one.answer.refused]
    if refused:
        raise Rejected(*refused)
    return found


async def _admitted(
    suite: ServiceBus,
    documents: Sequence[tuple[str, dict[str, Any]]],
    namespace: str,
    scheduler_names: Sequence[str],
) -> Admitted:
    names = tuple(scheduler_names)
    try:
        credentials = await load(suite.kubeconfig, suite.context)
        async with KubeClient(credentials, user_agent="tutti-fits") as client:
            return await admit(client, documents, namespace=namespace, scheduler_names=names)
    except (CredentialsError, TransportError):
        return await admit(None, documents, namespace=namespace, scheduler_names=names)


async def _ask(suite: ServiceBus, asked: Sequence[FitRequest]) -> list[Fit]:
    async with suite.connected("tutti-fits") as bus:
        return [
            Fit(
                gang=f"{one.group.namespace}/{one.group.name}",
                members=len(one.pods),
                answer=await ask(
                    bus, subjects.ASK_FIT, one, codec.decode_fit_answer, timeout_s=_ANSWER_S
                ),
            )
            for one in asked
        ]


def _fail(message: str) -> None:
    click.echo(f"tutti: {message}", err=True)
    sys.exit(2)
