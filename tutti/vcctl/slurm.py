"""`vsub`, `vjobs`, `vcancel`, `vsuspend`, `vresume`, `vqueues`.

Here `-n` is the name and `-N` the namespace, the other way round than in `vcctl`.
"""

from collections.abc import Callable
from typing import Any, Final

import click

from shared.kube.resources import JOBS_VOLCANO, QUEUES_VOLCANO
from tutti.api import flags
from tutti.api.access import Access
from tutti.api.conventions import VOLCANO
from tutti.api.failing import Refusal, fail, run
from tutti.api.listing import Listing, list_kind
from tutti.api.output import Format
from tutti.job.columns import layout
from tutti.job.command import RESOURCES, delete_jobs, of, order_jobs, split_command
from tutti.job.running import Wish, run_job
from tutti.job.viewing import view_job
from tutti.queue.command import show_queues
from tutti.vcctl.command import LikeCobra

_SETTINGS: Final = {"help_option_names": ["-h", "--help"], "obj": VOLCANO}
_job_name = flags.name_flag("Job", "-n")
_namespace = flags.namespace_flag("-N")


def _program(name: str) -> Callable[[Callable[..., Any]], click.Command]:
    return click.command(name, cls=LikeCobra, context_settings=_SETTINGS)


@_program("vsub")
@_job_name
@click.option(
    "--namespace",
    "-N",
    envvar="VOLCANO_DEFAULT_JOB_NAMESPACE",
    default="default",
    show_default=True,
    show_envvar=True,
    metavar="NAME",
)
@click.option(
    "--image",
    "-i",
    envvar="VOLCANO_DEFAULT_IMAGE",
    default="busybox",
    show_default=True,
    show_envvar=True,
    help="Container image.",
)
@click.option(
    "--min",
    "-m",
    "minimum",
    type=click.IntRange(0),
    default=1,
    show_default=True,
    metavar="N",
    help="Pods that must run together.",
)
@click.option(
    "--replicas",
    "-r",
    type=click.IntRange(0),
    default=1,
    show_default=True,
    metavar="N",
    help="Pods in all.",
)
@click.option("--requests", "-R", default=RESOURCES, show_default=True, help="Of each pod.")
@click.option("--limits", "-L", default=RESOURCES, show_default=True, help="Of each pod.")
@click.option(
    "--scheduler",
    "-S",
    envvar="VOLCANO_SCHEDULER_NAME",
    default="volcano",
    show_default=True,
    show_envvar=True,
    metavar="NAME",
    help="Scheduler of the pods.",
)
@click.option("--command", "-c", default="", help="Command of the container, as a shell reads it.")
@flags.access_flags
def vsub(
    *,
    access: Access,
    name: str,
    namespace: str,
    image: str,
    minimum: int,
    replicas: int,
    requests: str,
    limits: str,
    scheduler: str,
    command: str,
) -> None:
    """Submit a Job made from flags. (Manifests are for `kubectl` and `vcctl job run -f`.)"""
    try:
        wish = Wish(
            access=access,
            namespace=namespace,
            name=name,
            image=image,
            minimum=minimum,
            replicas=replicas,
            requests=requests,
            limits=limits,
            scheduler=scheduler,
            command=split_command(command),
        )
    except Refusal as error:
        fail(str(error))
    run(run_job(wish))


@_program("vjobs")
@_job_name
@_namespace
@click.option("--scheduler", "-S", default="", metavar="NAME", help="Only those of this scheduler.")
@flags.everywhere_flag
@flags.selector_flag
@flags.output_flag()
@flags.watch_flag
@flags.access_flags
def vjobs(
    *,
    access: Access,
    name: str,
    namespace: str,
    scheduler: str,
    all_namespaces: bool,
    selector: str,
    output: Format,
    watch: bool,
) -> None:
    """List Jobs; with --name, show all of one."""
    if name:
        run(view_job(access, namespace, name, output))
        return
    asked = Listing(
        access=access,
        namespace=namespace,
        everywhere=all_namespaces,
        selector=selector,
        output=output,
        watch=watch,
        keep=of("", scheduler),
    )
    run(list_kind(JOBS_VOLCANO, layout, asked))


@_program("vcancel")
@_job_name
@_namespace
@flags.names_argument(JOBS_VOLCANO)
@flags.access_flags
def vcancel(*, access: Access, name: str, namespace: str, names: tuple[str, ...]) -> None:
    """Delete Jobs."""
    run(delete_jobs(access, namespace, name, names))


@_program("vsuspend")
@_job_name
@_namespace
@flags.names_argument(JOBS_VOLCANO)
@flags.access_flags
def vsuspend(*, access: Access, name: str, namespace: str, names: tuple[str, ...]) -> None:
    """Abort Jobs; they can be resumed."""
    run(order_jobs(access, namespace, name, names, "AbortJob"))


@_program("vresume")
@_job_name
@_namespace
@flags.names_argument(JOBS_VOLCANO)
@flags.access_flags
def vresume(*, access: Access, name: str, namespace: str, names: tuple[str, ...]) -> None:
    """Start suspended Jobs again."""
    run(order_jobs(access, namespace, name, names, "ResumeJob"))


@_program("vqueues")
@flags.name_flag("Queue", "-n")
@flags.output_flag()
@flags.names_argument(QUEUES_VOLCANO)
@flags.access_flags
def vqueues(*, access: Access, name: str, output: Format, names: tuple[str, ...]) -> None:
    """List Queues, or those that are named, with their PodGroups by phase."""
    chosen = (*([name] if name else []), *names)
    run(show_queues(access, chosen, output, slurm=True))
