"""The `tutti` command: a table of subcommands, each imported only when it is typed.

`tutti --help` and `tutti up` must not pay for what they do not use: rich, aiohttp, the embedded
cluster.
"""

from typing import Final

import click

from tutti.lazy_commands import LazyCommands, Table


def _up() -> click.Command:
    from tutti.up.command import up

    return up


def _demo() -> click.Command:
    from tutti.demo.command import demo

    return demo


def _why() -> click.Command:
    from tutti.why.command import why

    return why


def _status() -> click.Command:
    from tutti.status.command import status

    return status


def _queues() -> click.Command:
    from tutti.queues.command import queues

    return queues


def _trace() -> click.Command:
    from tutti.trace.command import trace

    return trace


def _observe() -> click.Command:
    from tutti.observe.command import observe

    return observe


def _migrate() -> click.Command:
    from tutti.migrate.command import migrate

    return migrate


def _top() -> click.Command:
    from tutti.top.command import top

    return top


def _timeline() -> click.Command:
    from tutti.timeline.command import timeline

    return timeline


def _bundle() -> click.Command:
    from tutti.bundle.command import bundle

    return bundle


def _cluster() -> click.Command:
    from tutti.cluster_command import cluster

    return cluster


def _bench() -> click.Command:
    from tutti.bench_command import bench

    return bench


def _fits() -> click.Command:
    from tutti.fits.command import fits

    return fits


def _replay() -> click.Command:
    from tutti.replay_command import replay

    return replay


def _job() -> click.Command:
    from tutti.job.command import job

    return job


def _queue() -> click.Command:
    from tutti.queue.command import queue

    return queue


def _jobflow() -> click.Command:
    from tutti.jobflow.command import jobflow

    return jobflow


def _jobtemplate() -> click.Command:
    from tutti.jobtemplate.command import jobtemplate

    return jobtemplate


def _cronjob() -> click.Command:
    from tutti.cronjob.command import cronjob

    return cronjob


def _podgroup() -> click.Command:
    from tutti.podgroup.command import podgroup

    return podgroup


def _pod() -> click.Command:
    from tutti.pod.command import pod

    return pod


def _provision() -> click.Command:
    from tutti.provision.command import provision

    return provision


def _nats_reload() -> click.Command:
    from tutti.provision.command import nats_reload

    return nats_reload


def _crds() -> click.Command:
    from tutti.crds_command import crds

    return crds


def _completion() -> click.Command:
    from tutti.completion_command import completion

    return completion


#: How to get each subcommand, and what it does in one line.
COMMANDS: Final[Table] = {
    "demo": (_demo, "Play the experiment that gangs are for, on an embedded cluster."),
    "up": (_up, "Run all services, NATS included, against a cluster."),
    "why": (_why, "Say why a pod, a PodGroup or a job waits."),
    "job": (_job, "Submit Jobs and look after them: run, list, view, logs, suspend, delete…"),
    "queue": (_queue, "Create, list, open, close and delete Queues."),
    "jobflow": (_jobflow, "Create, list and delete JobFlows."),
    "jobtemplate": (_jobtemplate, "Create, list and delete JobTemplates."),
    "cronjob": (_cronjob, "Create, list, suspend and delete CronJobs of Jobs."),
    "podgroup": (_podgroup, "Look at PodGroups."),
    "pod": (_pod, "List the pods of Jobs and of queues."),
    "status": (_status, "Show services, gangs by phase and decisions a second."),
    "queues": (_queues, "Show what queues hold, deserve and have reserved, and why."),
    "top": (_top, "Show which queues and nodes hold most of what there is."),
    "timeline": (_timeline, "Draw when gangs were on which nodes."),
    "bundle": (_bundle, "Collect what a bug report needs in one file."),
    "trace": (_trace, "Show what happened to a gang, and when."),
    "observe": (_observe, "Show what `tutti up --observe` finds beside another scheduler."),
    "migrate": (_migrate, "Say what would change if Tutti took over from another scheduler."),
    "cluster": (_cluster, "An embedded cluster, for trying Tutti without one."),
    "fits": (_fits, "Say whether manifests would fit now, and where."),
    "replay": (_replay, "Run a recording again, with its configuration or another one."),
    "crds": (_crds, "Create our kinds and bring them up to date, or print them."),
    "provision": (_provision, "Make keys and certificates for NATS, and renew them."),
    "nats-reload": (_nats_reload, "Have nats-server read files again that were replaced."),
    "completion": (_completion, "Print the script that completes commands in a shell."),
    "bench": (_bench, "Run the benchmarks of a checkout."),
}


@click.command(
    cls=LazyCommands, table=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(package_name="tutti", message="%(prog)s %(version)s")
def main() -> None:
    """Tutti, a gang scheduler for Kubernetes: all members of a job are bound together, or none."""


def kubectl_plugin() -> None:
    """`kubectl tutti`: kubectl runs the program `kubectl-tutti` on PATH."""
    main(prog_name="kubectl tutti")


if __name__ == "__main__":
    main()
