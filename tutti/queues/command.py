"""`tutti queues` as it is typed."""

import asyncio
import sys
from typing import Final

import click
import msgspec
from rich.console import Console

from shared.bus.errors import BusError, NoAnswer
from shared.bus.questions import ask
from shared.contracts import codec, subjects
from shared.contracts.questions import LedgerAnswer, LedgerRequest
from shared.kube.errors import KubeError
from tutti.api.failures import explained
from tutti.queues.showing import show
from tutti.service_bus import NotReachable, ServiceBus, service_options

#: A standby answers between two looks at its streams.
_ANSWER_S: Final = 3.0


@click.command()
@click.argument("names", nargs=-1, metavar="[QUEUE]...")
@service_options
@click.option("--output", "-o", type=click.Choice(["text", "json"]), default="text")
def queues(
    *,
    names: tuple[str, ...],
    suite: ServiceBus,
    output: str,
) -> None:
    """Show what queues hold, deserve, were promised and are owed, and why.

    The planner's standby answers. Ends with status 1 when no planner does, or a queue is unknown.
    """
    try:
        found = asyncio.run(_ask(suite))
    except NoAnswer:
        click.echo("tutti: no standby of the planner answers", err=True)
        sys.exit(1)
    except (BusError, KubeError, OSError, NotReachable) as error:
        click.echo(f"tutti: {explained(error)}", err=True)
        sys.exit(1)
    if names:
        unknown = sorted(set(names) - {one.name for one in found.queues})
        if unknown:
            click.echo(f"tutti: no queue {', '.join(unknown)}", err=True)
            sys.exit(1)
        chosen = tuple(one for one in found.queues if one.name in names)
        found = msgspec.structs.replace(found, queues=chosen)
    if output == "json":
        click.echo(msgspec.json.format(msgspec.json.encode(found)).decode())
    else:
        show(found, Console())


async def _ask(suite: ServiceBus) -> LedgerAnswer:
    async with suite.connected("tutti-queues") as bus:
        return await ask(
            bus,
            subjects.ASK_LEDGER,
            LedgerRequest(),
            codec.decode_ledger_answer,
            timeout_s=_ANSWER_S,
        )
