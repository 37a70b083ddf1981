"""`tutti migrate` as it is typed."""

import asyncio
import itertools
import sys
from pathlib import Path
from typing import Final

import click
import msgspec
from rich.console import Console

from shared.kube.errors import KubeError
from shared.kube.resources import JOBS_VOLCANO
from tutti.api.access import Access, opened
from tutti.api.failures import explained
from tutti.migrate import gangs, installed, people, stored
from tutti.migrate.findings import Check, in_order
from tutti.migrate.gathering import look
from tutti.migrate.judging import JudgeFailed
from tutti.migrate.seen import QUEUES, PolicyText, Seen
from tutti.migrate.showing import show
from tutti.up.cluster_checks import ClusterUnreachable
from tutti.up.options import SCHEDULER_NAMES

#: Of a table that goes to a file or another program.
_WIDE: Final = 200
_BLOCKED: Final = 1
_NOT_LOOKED: Final = 2


@click.group()
def migrate() -> None:
    """Prepare a switch from another gang scheduler."""


@migrate.command()
@click.option("--kubeconfig", default="", metavar="FILE", help="Kubeconfig; else as kubectl does.")
@click.option("--context", default="", metavar="NAME", help="Context in the kubeconfig.")
@click.option(
    "--scheduler-name",
    "scheduler_names",
    multiple=True,
    default=SCHEDULER_NAMES,
    show_default=True,
    metavar="NAME",
    help="Names that Tutti would answer to; repeatable.",
)
@click.option(
    "--scheduler-conf",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A volcano-scheduler.conf to judge, instead of those of the cluster.",
)
@click.option("--output", "-o", type=click.Choice(["text", "json"]), default="text")
def check(
    *,
    kubeconfig: str,
    context: str,
    scheduler_names: tuple[str, ...],
    scheduler_conf: Path | None,
    output: str,
) -> None:
    """Say what would change if Tutti took over: unsupported devices first.

    Reads only: get and list of what it looks at are enough, and what may not be read is named.
    Ends with status 0 when nothing blocks a switch, 1 when something does, 2 when it could not
    look.
    """
    access = Access(kubeconfig=kubeconfig, context=context)
    try:
        conf = None
        if scheduler_conf is not None:
            text = scheduler_conf.read_text(encoding="utf-8")
            conf = PolicyText(where=str(scheduler_conf), text=text)
        found = asyncio.run(_check(access, scheduler_names, conf))
    except (ClusterUnreachable, JudgeFailed, KubeError, OSError, ValueError) as error:
        click.echo(f"tutti: {explained(error)}", err=True)
        sys.exit(_NOT_LOOKED)
    if output == "json":
        click.echo(msgspec.json.format(msgspec.json.encode(found)).decode())
    else:
        show(found, Console(width=None if sys.stdout.isatty() else _WIDE))
    sys.exit(_BLOCKED if found.blocked else 0)


async def _check(
    access: Access, scheduler_names: tuple[str, ...], conf: PolicyText | None
) -> Check:
    async with opened(access) as client:
        seen = await look(client, scheduler_names, conf)
        return judge(seen, client.credentials.server)


def judge(seen: Seen, server: str) -> Check:
    """Everything that follows from what was seen."""
    modules = (gangs, installed, people, stored)
    findings = itertools.chain.from_iterable(one.findings(seen) for one in modules)
    return Check(
        server=server,
        scheduler_names=seen.scheduler_names,
        pods=len(seen.pods),
        gangs=len(seen.groups),
        jobs=len(seen.of(JOBS_VOLCANO)),
        queues=sum(len(seen.of(resource)) for resource in QUEUES),
        findings=in_order(findings),
    )
