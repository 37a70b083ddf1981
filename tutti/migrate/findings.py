"""What a check finds: one sentence each, about one object or one kind of them."""

from collections.abc import Iterable
from typing import Final, Literal

import msgspec

Level = Literal["blocks", "step", "changes", "tells"]
"""blocks: does not work with Tutti as it is. step: to be done in the course of a switch. changes:
works, otherwise than now. `tells`: good to know.
"""

LEVELS: Final[tuple[Level, ...]] = ("blocks", "step", "changes", "tells")
#: First what no switch can do without; the order of the report within one level.
TOPICS: Final = (
    "devices",
    "dialect",
    "configuration",
    "crd",
    "rival",
    "webhook",
    "scheduler name",
    "gang",
    "stored object",
    "annotation",
    "rights",
)


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """See the module's docstring; `what` is "KIND NAMESPACE/NAME", or a word."""

    level: Level
    topic: str
    what: str
    message: str


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that was found, in the order of the report."""

    server: str
    scheduler_names: tuple[str, ...]
    #: How many objects were looked at.
    pods: int
    gangs: int
    jobs: int
    queues: int
    findings: tuple[Finding, ...]

    @property
    def blocked(self) -> bool:
        """Whether anything does not work with Tutti."""
        return any(finding.level == "blocks" for finding in self.findings)


def in_order(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Worst first."""

    def place(finding: Finding) -> tuple[int, int, str, str]:
        level, topic = LEVELS.index(finding.level), TOPICS.index(finding.topic)
        return level, topic, finding.what, finding.message

    return tuple(sorted(findings, key=place))
