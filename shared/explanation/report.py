"""The report on manifests: what `--output json` prints."""

from typing import Literal

import msgspec


class Scheduling(msgspec.Struct, frozen=True, kw_only=True):
    """The scheduler of a kind of pods.

    Attributes:
        scheduler: The name in the manifest, or its default.
        taken: Whether Tutti schedules the pods.
        sentence: Why, or what is missing.
    """

    scheduler: str
    taken: bool
    sentence: str


class Declared(msgspec.Struct, frozen=True, kw_only=True):
    """A place in which pods declare a gang.

    Attributes:
        place: The label, annotation or field.
        value: Its value.
        dialect: The dialect that reads it; "": none does.
        counts: Whether it determines the gang.
        sentence: Why it does or does not.
    """

    place: str
    value: str
    dialect: str
    counts: bool
    sentence: str


class ObjectReport(msgspec.Struct, frozen=True, kw_only=True):
    """One object of the files.

    Attributes:
        place: "document 2".
        title: "Pod team/train-0".
        gangs: Titles of the gangs that it declares or joins.
        facts: How it is read, in sentences.
        declared: Where its pods declare a gang, by precedence.
        scheduling: The schedulers of its pods.
        missing: What keeps its pods from being scheduled by Tutti as they stand.
        ignored: What is not read, or has no effect, and why.
    """

    place: str
    title: str
    gangs: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()
    declared: tuple[Declared, ...] = ()
    scheduling: tuple[Scheduling, ...] = ()
    missing: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()


class RoleReport(msgspec.Struct, frozen=True, kw_only=True):
    """The members of one role; `minimum` is 0 where the role has none."""

    role: str
    members: int
    minimum: int


class PartReport(msgspec.Struct, frozen=True, kw_only=True):
    """One group of a tree of groups.

    Attributes:
        name: Its name.
        parent: The name of the group that it is in; "": it is the outermost one.
        level: 1 for the outermost group, 2 for the groups in it, and so on.
        of: Whether it is a group of groups or of pods.
        count: The groups in it, or its pods, in these files.
        minimum: How many of them start together.
        topology: Where its pods must be together; "": anywhere.
    """

    name: str
    parent: str
    level: int
    of: Literal["groups", "pods"]
    count: int
    minimum: int
    topology: str = ""


class GangReport(msgspec.Struct, frozen=True, kw_only=True):
    """One gang.

    Attributes:
        title: "team/train".
        declared_by: What declares it.
        minimum: Pods that are placed together or not at all; None: not known from these files.
        members: Its pods in these files.
        roles: By role, if there are any.
        queue: Its queue.
        priority_class: Its PriorityClass; "": none.
        topology: Where its pods must be together; "": anywhere.
        parts: The groups of a tree of groups, each followed by those in it.
        scheduled: Whether Tutti schedules all of its pods.
        missing: What is not in these files and must exist, or must be changed.
        ignored: What is not in force, and why.
    """

    title: str
    declared_by: str
    minimum: int | None
    members: int
    roles: tuple[RoleReport, ...] = ()
    queue: str
    priority_class: str = ""
    topology: str = ""
    parts: tuple[PartReport, ...] = ()
    scheduled: bool
    missing: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """All objects, and all gangs that they form."""

    objects: tuple[ObjectReport, ...]
    gangs: tuple[GangReport, ...]

    @property
    def complete(self) -> bool:
        """Whether Tutti schedules every gang as it stands, and no object lacks anything."""
        return all(one.scheduled for one in self.gangs) and not any(
            one.missing for one in self.objects
        )
