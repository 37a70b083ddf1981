"""Command of bus.volcano.sh/v1alpha1: an order to a controller about one object.

A controller deletes a Command before it performs it, so that it performs it at most once.
"""

from typing import Annotated, Final

from shared.kinds.fields import Description, always, rules
from shared.kinds.metadata import KindObject
from shared.kube.objects import OwnerReference
from shared.kube.resources import COMMANDS


class Command(KindObject, frozen=True, kw_only=True):
    """Command requests one action on an object. The controller deletes it before it acts."""

    api_version: str = always("bus.volcano.sh/v1alpha1")
    kind: str = always("Command")
    action: Annotated[str, rules("The action: AbortJob, ResumeJob, OpenQueue, CloseQueue…")] = ""
    target: Annotated[
        OwnerReference | None,
        rules(
            "The object on which to act.",
            required_fields=["apiVersion", "kind", "name", "uid"],
            map_type="atomic",
        ),
    ] = None
    reason: Annotated[str, rules("The reason in CamelCase.")] = ""
    message: Annotated[str, rules("The reason in a sentence.")] = ""


COMMAND: Final = Description(
    struct=Command,
    resource=COMMANDS,
    status_subresource=False,
)
