"""`tutti migrate`: what a switch from another scheduler would change, and what it needs."""

import asyncio
import sys
from pathlib import Path

import click

from shared.kube.resources import JOBS_VOLCANO
from tutti.api.access import Access, open_client
from tutti.api.failures import Refusal, run
from tutti.api.flags import access_flags, report_flag, scheduler_names_flag
from tutti.api.output import print_report
from tutti.convert.command import queues
from tutti.migrate.cluster_facts import QUEUES, ClusterFacts, PolicyText
from tutti.migrate.cluster_reader import read_cluster
from tutti.migrate.comparison import (
    Check,
    gang_findings,
    in_order,
    installation_findings,
    object_findings,
    show,
)
from tutti.migrate.observation import observe
from tutti.terminal import report_console


@click.group()
def migrate() -> None:
    """Prepare a switch from another gang scheduler."""


migrate.add_command(observe)
migrate.add_command(queues)


@migrate.command()
@access_flags
@scheduler_names_flag("Scheduler names that Tutti would serve; repeatable.")
@click.option(
    "--scheduler-conf",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Check this volcano-scheduler.conf instead of those in the cluster.",
)
@report_flag
def check(
    *,
    access: Access,
    scheduler_names: tuple[str, ...],
    scheduler_conf: Path | None,
    output: str,
) -> None:
    """Report what would change if Tutti replaced the scheduler of this cluster: unsupported devices
    first.

    Nothing is written; the rights to get and list are enough, and resources that may not be read
    are reported. Exits with status 0 when nothing blocks a switch, 1 when something does, 2 when
    the cluster could not be read.
    """
    checked = run(_check(access, scheduler_names, scheduler_conf))
    print_report(checked, output, lambda: show(checked, report_console()))
    sys.exit(1 if checked.blocked else 0)


async def _check(
    access: Access, scheduler_names: tuple[str, ...], scheduler_conf: Path | None
) -> Check:
    conf = None
    if scheduler_conf is not None:
        try:
            text = await asyncio.to_thread(scheduler_conf.read_text, encoding="utf-8")
        except ValueError as error:
            raise Refusal(f"{scheduler_conf}: {error}") from None
        conf = PolicyText(where=str(scheduler_conf), text=text)
    async with open_client(access) as client:
        facts = await read_cluster(client, scheduler_names, conf)
        return judge(facts, client.credentials.server)


def judge(facts: ClusterFacts, server: str) -> Check:
    """All findings about a cluster."""
    return Check(
        server=server,
        scheduler_names=facts.scheduler_names,
        pods=len(facts.pods),
        gangs=len(facts.groups),
        jobs=len(facts.of(JOBS_VOLCANO)),
        queues=sum(len(facts.of(resource)) for resource in QUEUES),
        findings=in_order(
            [*gang_findings(facts), *installation_findings(facts), *object_findings(facts)]
        ),
    )
