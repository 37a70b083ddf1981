"""An observation as text: a row per gang, and a summary in a few sentences."""

from datetime import UTC, datetime

from rich.console import Console
from rich.table import Table
from rich.text import Text

from shared.contracts.observing import GangObserved, Observation
from tutti.observe.summary import Summary, Waits, partial_ms, summarize
from tutti.terminal import plain_table

_COLUMNS = ("MEMBERS", "COMPLETE", "TUTTI", "RIVAL FIRST", "RIVAL WHOLE", "PARTIAL")


def show(observation: Observation, console: Console) -> None:
    """Print it; in colour where the console has colours."""
    table = plain_table("GANG", *_COLUMNS, "NOTE", right=_COLUMNS, folded="NOTE")
    for row in observation.gangs:
        _add(table, row, observation.at_ms)
    if observation.gangs:
        console.print(table)
    for line in sentences(observation):
        console.print(Text(line))


def sentences(observation: Observation) -> list[str]:
    found = summarize(observation)
    hours = (observation.at_ms - observation.since_ms) / 3_600_000
    lines = [
        f"observed {found.gangs} gangs for {hours:.1f} h, of which {found.before} were already "
        "bound; times are counted from the moment when a gang has all members that it needs",
        f"rival: {found.whole} bound whole{_words(found.other)}; {found.partial_ever} were bound "
        f"in part for {found.partial_s:.0f} s in total, {found.partial_now} are now",
        f"tutti: {found.decided} would have been bound whole{_words(found.tutti)}; "
        f"{found.only_tutti} of these still wait for the other scheduler",
    ]
    lines += _remarks(found)
    if observation.left_out:
        lines.append(f"{observation.left_out} gangs that were deleted long ago are left out")
    return lines


def _remarks(found: Summary) -> list[str]:
    lines: list[str] = []
    if found.only_rival:
        lines.append(
            f"{found.only_rival} gangs were bound by the other scheduler before Tutti decided them"
        )
    if found.evicting or found.releasing:
        lines.append(
            f"Tutti would have evicted other pods for {found.evicting} gangs, and released the "
            f"bound pods of {found.releasing}"
        )
    if found.failed:
        lines.append(
            f"DEFECT: {found.failed} of {found.decisions} decisions failed verification; do not "
            "switch, and report it with the observer's log"
        )
    elif found.decisions:
        lines.append(f"all {found.decisions} decisions passed verification")
    return lines


def _words(waits: Waits | None) -> str:
    if waits is None:
        return ""
    return f", median {waits.median_s:.1f} s, 99 % within {waits.p99_s:.1f} s"


def _add(table: Table, row: GangObserved, at_ms: int) -> None:
    partial = partial_ms(row, at_ms) / 1000
    cells = (
        f"{row.bound}/{row.members} needs {row.needs}",
        _instant(row.complete_ms),
        _after(row.decided_ms, row.complete_ms),
        "before" if row.before else _after(row.first_bound_ms, row.complete_ms),
        "" if row.before else _after(row.whole_ms, row.complete_ms),
        Text(f"{partial:.1f} s", "red" if row.partial_since_ms else "") if partial else "",
    )
    table.add_row(row.gang, *cells, _note(row))


def _note(row: GangObserved) -> str:
    notes = []
    if row.partial_since_ms:
        notes.append("still partial")
    elif row.ended_ms:
        notes.append("gone")
    if row.evicts:
        notes.append(f"Tutti would evict {row.evicts} pods for it")
    if row.release:
        notes.append(f"Tutti would release it ({row.release})")
    if row.failure:
        notes.append(f"verification failed: {row.failure}")
    return "; ".join(notes)


def _instant(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%H:%M:%SZ") if at_ms else "never"


def _after(at_ms: int, since_ms: int) -> str:
    """Seconds since the gang was complete; negative for members that were bound before."""
    if not at_ms:
        return ""
    return f"{(at_ms - since_ms) / 1000:+.1f} s" if since_ms else _instant(at_ms)
