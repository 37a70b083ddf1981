"""`tutti podgroup` as it is typed."""

from datetime import UTC, datetime

import click

from shared.kube.resources import PODGROUPS_VOLCANO
from tutti.api.ages import since
from tutti.api.flags import PflagGroup
from tutti.api.nouns import Noun, add_reading, add_writing
from tutti.api.objects import (
    Object,
    created,
    name_of,
    namespace_of,
    number,
    text,
    why_unschedulable,
)
from tutti.api.tables import Column, Layout


def _age(group: Object) -> str:
    return since(created(group), datetime.now(UTC))


def _layout(everywhere: bool) -> Layout:
    namespace = (Column(title="Namespace", value=namespace_of),) if everywhere else ()
    return Layout(
        columns=(
            *namespace,
            Column(title="Name", value=name_of),
            Column(title="Phase", value=lambda one: text(one, "status.phase"), coloured=True),
            Column(title="MinMember", value=lambda one: number(one, "spec.minMember")),
            Column(title="Running", value=lambda one: number(one, "status.running")),
            Column(title="Succeeded", value=lambda one: number(one, "status.succeeded")),
            Column(title="Failed", value=lambda one: number(one, "status.failed")),
            Column(title="Queue", value=lambda one: text(one, "spec.queue") or "default"),
            Column(title="Age", value=_age),
            Column(title="Why", wide=True, value=why_unschedulable),
        ),
        gap=4,
    )


@click.group(cls=PflagGroup)
def podgroup() -> None:
    """Look at PodGroups of scheduling.volcano.sh, create and delete them."""


add_reading(podgroup, Noun(resource=PODGROUPS_VOLCANO, layout=_layout))
add_writing(podgroup, Noun(resource=PODGROUPS_VOLCANO, layout=_layout))
