"""Command of bus.volcano.sh/v1alpha1: an order to a controller about one object.

A controller deletes a Command before it performs it, so that it performs it at most once.
"""

from typing import Annotated, Final

from shared.kinds.description import Description
from shared.kinds.fields import KindStruct, always, rules
from shared.kinds.metadata import Metadata, OwnerReference


class Command(KindStruct, frozen=True, kw_only=True):
    """Command is an order to a controller about one object; it is deleted when it is taken."""

    api_version: str = always("bus.volcano.sh/v1alpha1")
    kind: str = always("Command")
    metadata: Metadata = Metadata()
    action: Annotated[str, rules("What to do: AbortJob, ResumeJob, OpenQueue, CloseQueue…")] = ""
    target: Annotated[
        OwnerReference | None, rules("The object that it is about.", map_type="atomic")
    ] = None
    reason: Annotated[str, rules("Why, in one word.")] = ""
    message: Annotated[str, rules("Why, in a sentence.")] = ""


COMMAND: Final = Description(
    struct=Command,
    group="bus.volcano.sh",
    version="v1alpha1",
    kind="Command",
    plural="commands",
    status_subresource=False,
)
