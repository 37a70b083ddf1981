"""`tutti why` as it is typed."""

import asyncio
import sys
from datetime import UTC, datetime

import click
import msgspec
from rich.console import Console

from shared.kube.client import KubeClient
from shared.kube.credentials import load
from shared.kube.errors import ApiError, Forbidden, KubeError
from tutti.api.failures import explained
from tutti.up.options import SCHEDULER_NAMES
from tutti.why.explaining import Answer, explain
from tutti.why.gathering import Gatherer
from tutti.why.kinds import BadReference, read_reference
from tutti.why.planner_liveness import read_liveness
from tutti.why.showing import show

_CONNECTIONS_MAX = 16
#: Exit status of an answer that may be out of date, because no planner lives.
_NO_PLANNER = 3


@click.command()
@click.argument("reference", nargs=-1, required=True, metavar="[KIND/]NAME")
@click.option("--namespace", "-n", default="", help="Namespace; else that of the context.")
@click.option("--kubeconfig", default="", metavar="FILE", help="Kubeconfig; else as kubectl does.")
@click.option("--context", default="", metavar="NAME", help="Context in the kubeconfig.")
@click.option(
    "--scheduler-name",
    "scheduler_names",
    multiple=True,
    default=SCHEDULER_NAMES,
    show_default=True,
    metavar="NAME",
    help="Names that Tutti serves on this cluster; repeatable.",
)
@click.option("--output", "-o", type=click.Choice(["text", "json"]), default="text")
def why(
    *,
    reference: tuple[str, ...],
    namespace: str,
    kubeconfig: str,
    context: str,
    scheduler_names: tuple[str, ...],
    output: str,
) -> None:
    """Say why a pod, a PodGroup or a job waits.

    KIND is any kind that the API server serves: pod, podgroup, tfjob, vcjob, deployment; without
    one, NAME is looked for among all kinds of workloads. Nothing but the right to get and list in
    the namespace is needed.

    Ends with status 0 when it could answer, 1 when it could not, 2 for wrong usage, and 3 when it
    answered but no planner lives, so that the answer may be out of date.
    """
    try:
        word, name = read_reference(reference)
        answer = asyncio.run(_ask(kubeconfig, context, namespace, word, name, scheduler_names))
    except BadReference as error:
        _fail(str(error))
    except Forbidden as error:
        _fail(f"not allowed: {error.message}")
    except ApiError as error:
        _fail(f"the API server refuses: {error}")
    except KubeError as error:
        _fail(explained(error))
    else:
        if output == "json":
            click.echo(msgspec.json.format(msgspec.json.encode(answer)).decode())
        else:
            show(answer, Console(), answer.planner.now or datetime.now(UTC))
        if answer.planner.lives is False:
            sys.exit(_NO_PLANNER)


async def _ask(
    kubeconfig: str,
    context: str,
    namespace: str,
    word: str,
    name: str,
    scheduler_names: tuple[str, ...],
) -> Answer:
    credentials = await load(kubeconfig, context)
    client = KubeClient(credentials, connections_max=_CONNECTIONS_MAX, user_agent="tutti-why")
    async with client:
        gatherer = Gatherer(client, namespace or credentials.namespace, scheduler_names)
        try:
            facts = await gatherer.gather(word, name)
        except BaseExceptionGroup as failures:
            # Requests side by side fail as a group, for one and the same reason.
            raise failures.exceptions[0] from None
        ours = {each.pod.scheduler_name for each in facts.pods} & set(scheduler_names)
        facts = msgspec.structs.replace(facts, planner=await read_liveness(client, ours))
    return explain(facts, scheduler_names)


def _fail(message: str) -> None:
    click.echo(f"tutti: {message}", err=True)
    sys.exit(1)
