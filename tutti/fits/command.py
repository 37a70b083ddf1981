"""`tutti fits` as it is typed."""

import asyncio
import sys
from collections.abc import Sequence
from typing import IO, Final

import click
import msgspec
import yaml
from rich.console import Console
from rich.text import Text

from shared.bus.asking import ask
from shared.bus.errors import BusError, NoAnswer
from shared.contracts import codec, subjects
from shared.contracts.asking import FitAnswer, FitRequest
from shared.kube.errors import KubeError
from tutti.fits.expanding import BadManifest, expand
from tutti.suite_bus import NoSuite, SuiteBus, suite_options
from tutti.up.options import SCHEDULER_NAMES

#: A standby answers between two looks at its streams; a large gang takes it a while.
_ANSWER_S: Final = 10.0
_NODES_SHOWN_MAX: Final = 5
_GANGS_SHOWN_MAX: Final = 10


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
@suite_options
@click.option("--output", "-o", type=click.Choice(["text", "json"]), default="text")
def fits(
    *,
    files: Sequence[IO[str]],
    namespace: str,
    suite: SuiteBus,
    output: str,
) -> None:
    """Say whether gangs would fit now, and where, or what is missing, and whose pods would be
    evicted for them. Nothing is created.

    Ends with status 0 when all would, 1 when one would have to wait, 2 when nobody can say.
    """
    try:
        documents = [one for file in files for one in yaml.safe_load_all(file.read())]
        asked = expand(documents, namespace=namespace, scheduler_names=SCHEDULER_NAMES)
        found = asyncio.run(_ask(suite, asked))
    except NoAnswer:
        _fail("no standby of the planner answers")
    except (BadManifest, yaml.YAMLError, BusError, KubeError, OSError, NoSuite) as error:
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


async def _ask(suite: SuiteBus, asked: Sequence[FitRequest]) -> list[Fit]:
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
