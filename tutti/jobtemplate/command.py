"""`tutti jobtemplate` as it is typed."""

import click

from shared.kube.resources import JOBTEMPLATES
from tutti.api.flags import PflagGroup
from tutti.api.nouns import Noun, add_reading, add_writing
from tutti.api.objects import name_of, namespace_of
from tutti.api.tables import Column, Layout


def _layout(_: bool) -> Layout:
    return Layout(
        columns=(
            Column(title="Name", value=name_of),
            Column(title="Namespace", value=namespace_of),
        ),
        gap=4,
    )


@click.group(cls=PflagGroup)
def jobtemplate() -> None:
    """Create JobTemplates of flow.volcano.sh, look at them and delete them."""


add_reading(jobtemplate, Noun(resource=JOBTEMPLATES, layout=_layout))
add_writing(jobtemplate, Noun(resource=JOBTEMPLATES, layout=_layout))
