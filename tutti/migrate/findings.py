"""The findings of a check, one sentence each, and the report about them: blocking ones first."""

from collections.abc import Iterable
from typing import Final, Literal

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

Level = Literal["blocks", "step", "changes", "tells"]
"""blocks: does not work with Tutti. step: to be done when switching. changes: works differently.
`tells`: for information.
"""

#: The heads of the report and their styles, worst first.
_HEADS: Final[dict[Level, tuple[str, str]]] = {
    "blocks": ("does not work with Tutti as it is", "red"),
    "step": ("to be done when switching", "yellow"),
    "changes": ("works differently than now", "bold"),
    "tells": ("for information", "dim"),
}
_LEVELS: Final = tuple(_HEADS)
#: The order of the report within one level.
_TOPICS: Final = (
    "devices",
    "dialect",
    "configuration",
    "crd",
    "rival",
    "webhook",
    "scheduler name",
    "gang",
    "queue",
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
        level, topic = _LEVELS.index(finding.level), _TOPICS.index(finding.topic)
        return level, topic, finding.what, finding.message

    return tuple(sorted(findings, key=place))


def show(check: Check, console: Console) -> None:
    for level, (head, style) in _HEADS.items():
        found = [one for one in check.findings if one.level == level]
        if not found:
            continue
        console.print(Text(f"{head} ({len(found)})", style=style))
        table = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
        table.add_column("TOPIC", no_wrap=True)
        table.add_column("WHAT", overflow="fold")
        table.add_column("MESSAGE", overflow="fold", ratio=1)
        for one in found:
            table.add_row(f"  {one.topic}", one.what, Text(one.message))
        console.print(table)
    console.print(Text(closing(check)))


def closing(check: Check) -> str:
    """The last line: the checked objects, and whether a switch is possible."""
    blocking = sum(1 for one in check.findings if one.level == "blocks")
    checked = (
        f"checked {check.pods} pods, {check.gangs} groups, {check.jobs} Jobs and "
        f"{check.queues} queues on {check.server}"
    )
    if blocking:
        what = "finding blocks" if blocking == 1 else "findings block"
        return f"{checked}: {blocking} {what} a switch"
    return f"{checked}: nothing blocks a switch"
