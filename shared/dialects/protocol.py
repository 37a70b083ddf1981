"""What a dialect is: the contract of its file with the watcher, the controller and the webhook."""

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

import msgspec

from shared.contracts.verdicts import Verdict
from shared.kube.decoding import Undecodable
from shared.kube.resources import Resource
from shared.model.objects import ClusterObject

JsonObject: TypeAlias = dict[str, Any]
"""A Kubernetes object as plain JSON, of whatever shape its author gave it."""


class ReadingContext(msgspec.Struct, frozen=True, kw_only=True):
    """What reading depends on besides the object itself."""

    #: Names of schedulers that we are; pods that name another one are foreign.
    scheduler_names: frozenset[str]
    #: Our podgroup controller runs and its kind is served: bare pods will get a PodGroup, and
    #: belong to it already.
    implied_groups: bool = False
    #: Names of the dialects of `marks.READERS` whose kinds are served.
    awake: frozenset[str] = frozenset()


class FieldError(msgspec.Struct, frozen=True, kw_only=True):
    """One violation: the field's path ("spec.minMember") and the rule it breaks."""

    path: str
    message: str
    #: The whole violation in the words of another product, which has its own name for the path.
    words: str = ""

    @property
    def text(self) -> str:
        """Both in one line, as messages show them."""
        return self.words or f"{self.path}: {self.message}"


class StatusPatch(msgspec.Struct, frozen=True, kw_only=True):
    """A JSON merge patch for a group object.

    The body's `metadata.uid` makes the API server answer 409 when the name belongs to another
    object by now.
    """

    resource: Resource
    namespace: str
    name: str
    #: "status", or "" for the main resource.
    subresource: str = ""
    body: JsonObject

    @property
    def carries_metadata(self) -> bool:
        """Whether annotations put into this body are stored; if not, they need a patch of the main
        resource.
        """
        return self.subresource == ""


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """One resource that a dialect reads, and what it becomes.

    Kinds of one resource (a budget is a gang to one dialect, a budget to the planner) share its
    watch, so they have one `decoded`.
    """

    resource: Resource
    #: Neutral kind (`shared.model.objects.KINDS`) that it becomes.
    neutral: str
    #: Typed struct of `shared.kube.objects` that it is decoded into.
    decoded: type[msgspec.Struct]
    #: Object -> model; None when the object is nothing that scheduling needs. Never raises for what
    #: users wrote.
    read: Callable[[Any, ReadingContext], ClusterObject | None]
    #: The same for an object that did not fit its type: what is wrong must be explained, not lost.
    read_undecodable: Callable[[Undecodable, ReadingContext], ClusterObject | None]
    #: Looked up when needed; many clusters do not have it, and no service waits for it to come.
    lookup: bool = False
    #: Where the controller writes: "" main resource, "status" subresource, None: it does not.
    status_at: str | None = None


class Dialect(Protocol):
    """A module of `shared.dialects` that is a dialect."""

    @property
    def NAME(self) -> str:  # noqa: N802 - a module's constant
        """Its name: equal to the file's, stored in `PodGroup.dialect` and `Queue.dialect`."""
        ...

    @property
    def KINDS(self) -> tuple[Kind, ...]:  # noqa: N802 - a module's constant
        """The resources it reads."""
        ...

    def status(self, verdict: Verdict) -> StatusPatch | None:
        """What to write on the group of this verdict; None when there is nothing to write to."""
        ...

    def validate(self, kind: str, candidate: JsonObject) -> list[FieldError]:
        """Every reason for which admission refuses this object of Kubernetes kind `kind`; empty
        when fine.

        Only what the object itself shows: whether a queue exists is the webhook's business.
        """
        ...
