"""`tutti queues` as it is typed."""

import asyncio
import sys
from pathlib import Path
from typing import Final

import click
import msgspec
from rich.console import Console

from shared.bus.asking import ask
from shared.bus.connection import Bus
from shared.bus.errors import BusError, NoAnswer
from shared.contracts import codec, subjects
from shared.contracts.asking import LedgerAnswer, LedgerRequest
from shared.kube.errors import KubeError
from tutti.queues.showing import show
from tutti.status.command import NoSuite, find_nats

_CONNECT_S: Final = 3.0
#: A standby answers between two looks at its streams.
_ANSWER_S: Final = 3.0


@click.command()
@click.argument("names", nargs=-1, metavar="[QUEUE]...")
@click.option("--nats", "nats_url", default="", metavar="URL", help="NATS of the suite.")
@click.option("--nats-credentials", default="", metavar="FILE", help="Credentials or nkey seed.")
@click.option("--nats-ca", default="", metavar="FILE", help="CA of the NATS servers.")
@click.option(
    "--data-dir",
    type=click.Path(file_okay=False, path_type=Path),
    help="Data folder of a `tutti up` on this machine; else that of the cluster.",
)
@click.option("--kubeconfig", default="", metavar="FILE", help="Kubeconfig of the cluster.")
@click.option("--context", default="", metavar="NAME", help="Context in the kubeconfig.")
@click.option("--output", "-o", type=click.Choice(["text", "json"]), default="text")
def queues(
    *,
    names: tuple[str, ...],
    nats_url: str,
    nats_credentials: str,
    nats_ca: str,
    data_dir: Path | None,
    kubeconfig: str,
    context: str,
    output: str,
) -> None:
    """Show what queues hold, deserve, were promised and are owed, and why.

    The planner's standby answers. Ends with status 1 when nobody does, or a queue is unknown.
    """
    try:
        url = nats_url or asyncio.run(find_nats(data_dir, kubeconfig, context))
        found = asyncio.run(_ask(url, nats_credentials, nats_ca))
    except NoAnswer:
        click.echo("tutti: no standby of the planner answers", err=True)
        sys.exit(1)
    except (BusError, KubeError, OSError, NoSuite) as error:
        click.echo(f"tutti: {error}", err=True)
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


async def _ask(url: str, credentials: str, ca: str) -> LedgerAnswer:
    bus = await Bus.connect(
        url, name="tutti-queues", credentials=credentials, tls_ca=ca, patience_s=_CONNECT_S
    )
    try:
        return await ask(
            bus,
            subjects.ASK_LEDGER,
            LedgerRequest(),
            codec.decode_ledger_answer,
            timeout_s=_ANSWER_S,
        )
    finally:
        await bus.close()
