"""`tutti jobflow` as it is typed."""

from datetime import UTC, datetime

import click

from shared.kube.resources import JOBFLOWS
from tutti.api.ages import since
from tutti.api.flags import PflagGroup
from tutti.api.nouns import Noun, add_reading, add_writing
from tutti.api.objects import Object, created, name_of, namespace_of, text
from tutti.api.tables import Column, Layout


def _age(flow: Object) -> str:
    return since(created(flow), datetime.now(UTC))


def _layout(_: bool) -> Layout:
    return Layout(
        columns=(
            Column(title="Name", value=name_of),
            Column(title="Namespace", value=namespace_of),
            Column(
                title="Phase", value=lambda flow: text(flow, "status.state.phase"), coloured=True
            ),
            Column(title="Age", value=_age),
        ),
        gap=4,
    )


@click.group(cls=PflagGroup)
def jobflow() -> None:
    """Create JobFlows of flow.volcano.sh, look at them and delete them."""


add_reading(jobflow, Noun(resource=JOBFLOWS, layout=_layout))
add_writing(jobflow, Noun(resource=JOBFLOWS, layout=_layout))
