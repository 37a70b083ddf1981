"""`tutti cronjob` as it is typed."""

from datetime import UTC, datetime

import click

from shared.kube.resources import CRONJOBS_VOLCANO
from tutti.api import flags
from tutti.api.access import Access, opened
from tutti.api.ages import since
from tutti.api.failures import run
from tutti.api.nouns import Noun, add_reading, add_writing
from tutti.api.objects import Object, created, field, name_of, namespace_of, text
from tutti.api.output import echo, reference
from tutti.api.tables import Column, Layout

_names = flags.names_argument(CRONJOBS_VOLCANO)
_name_flag = flags.name_flag("CronJob")


def _last(cronjob: Object) -> str:
    last = text(cronjob, "status.lastScheduleTime")
    return since(last, datetime.now(UTC)) if last else "<none>"


def _age(cronjob: Object) -> str:
    return since(created(cronjob), datetime.now(UTC))


def _layout(everywhere: bool) -> Layout:
    namespace = (Column(title="Namespace", value=namespace_of),) if everywhere else ()
    return Layout(
        columns=(
            *namespace,
            Column(title="Name", value=name_of),
            Column(title="Schedule", value=lambda one: text(one, "spec.schedule")),
            Column(title="TimeZone", value=lambda one: text(one, "spec.timeZone") or "<none>"),
            Column(title="Suspend", value=lambda one: field(one, "spec.suspend", False)),
            Column(title="Active", value=lambda one: len(field(one, "status.active", []))),
            Column(title="LastSchedule", value=_last),
            Column(title="Age", value=_age),
        ),
        gap=4,
    )


@click.group(cls=flags.PflagGroup)
def cronjob() -> None:
    """Create CronJobs of batch.volcano.sh, look at them, suspend, resume and delete them."""


add_reading(cronjob, Noun(resource=CRONJOBS_VOLCANO, layout=_layout))
add_writing(cronjob, Noun(resource=CRONJOBS_VOLCANO, layout=_layout))


@cronjob.command("suspend")
@flags.namespace_flag()
@_name_flag
@_names
@flags.access_flags
def suspend(*, access: Access, namespace: str, name: str, names: tuple[str, ...]) -> None:
    """Start no more Jobs; those that run continue."""
    run(_set_suspended(access, namespace, name, names, suspended=True))


@cronjob.command("resume")
@flags.namespace_flag()
@_name_flag
@_names
@flags.access_flags
def resume(*, access: Access, namespace: str, name: str, names: tuple[str, ...]) -> None:
    """Start Jobs again when they are due."""
    run(_set_suspended(access, namespace, name, names, suspended=False))


async def _set_suspended(
    access: Access, namespace: str, name: str, names: tuple[str, ...], *, suspended: bool
) -> None:
    chosen = flags.the_names("cronjob", name, names)
    async with opened(access) as client:
        place = flags.namespace_or_default(namespace, client.credentials.namespace)
        for each in chosen:
            patch = {"spec": {"suspend": suspended}}
            await client.patch(CRONJOBS_VOLCANO, each, patch, namespace=place)
            done = "suspended" if suspended else "resumed"
            echo(f"{reference(CRONJOBS_VOLCANO, each)} {done}")
