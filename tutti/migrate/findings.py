"""The findings of a check: one sentence each, about an object or a kind."""

from collections.abc import Iterable
from typing import Final, Literal

import msgspec

Level = Literal["blocks", "step", "changes", "tells"]
"""blocks: does not work with Tutti. step: to be done when switching. changes: works differently.
`tells`: for information.
"""

LEVELS: Final[tuple[Level, ...]] = ("blocks", "step", "changes", "tells")
#: The order of the report within one level.
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


class Finding(msgspec.Struct, frozen=True):
    """One finding; `what` is its subject, "KIND NAMESPACE/NAME" or a word."""

    level: Level
    topic: str
    what: str
    message: str


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """All findings, in the order of the report."""

    server: str
    scheduler_names: tuple[str, ...]
    #: The number of objects that were checked.
    pods: int
    gangs: int
    jobs: int
    queues: int
    findings: tuple[Finding, ...]

    @property
    def blocked(self) -> bool:
        return any(finding.level == "blocks" for finding in self.findings)


def in_order(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Worst first."""

    def place(finding: Finding) -> tuple[int, int, str, str]:
        level, topic = LEVELS.index(finding.level), TOPICS.index(finding.topic)
        return level, topic, finding.what, finding.message

    return tuple(sorted(findings, key=place))
