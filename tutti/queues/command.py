"""`tutti queues`: the planner's ledger of queues."""

import click
import msgspec
from rich.console import Console

from shared.contracts.questions import LedgerAnswer
from tutti.api.failures import Refusal, run
from tutti.api.flags import report_flag
from tutti.api.output import echo_json
from tutti.queues.view import show
from tutti.service_bus import ServiceBus, read_ledger, service_options


@click.command()
@click.argument("names", nargs=-1, metavar="[QUEUE]...")
@service_options
@report_flag
def queues(*, names: tuple[str, ...], services: ServiceBus, output: str) -> None:
    """Show what each queue uses, deserves and has reserved, and why.

    The standby planner answers. Exits with status 1 when none does, or a queue is unknown.
    """
    found = run(_read(services, names))
    if output == "json":
        echo_json(found)
    else:
        show(found, Console())


async def _read(services: ServiceBus, names: tuple[str, ...]) -> LedgerAnswer:
    async with services.connected("tutti-queues") as bus:
        found = await read_ledger(bus)
    unknown = sorted(set(names) - {one.name for one in found.queues})
    if unknown:
        raise Refusal(f"no queue {', '.join(unknown)}")
    chosen = tuple(one for one in found.queues if not names or one.name in names)
    return msgspec.structs.replace(found, queues=chosen)
