"""A session as tables for the terminal and as Markdown for a certificate."""

from collections.abc import Iterable

from rich.console import Console
from rich.table import Table

from bench.bars import (
    LARGE_NODES,
    Figure,
    cpu_by_role,
    drain_figures,
    live_figures,
    webhook_figures,
)
from bench.session import Session


def figures_of(session: Session) -> list[Figure]:
    """All figures of a session, in the order of its plan."""
    found: list[Figure] = []
    large = session.nodes >= LARGE_NODES
    for contender in dict.fromkeys(run.contender for run in session.lives):
        runs = [run for run in session.lives if run.contender == contender]
        found += live_figures(runs, large=large)
    for key in dict.fromkeys((case.run.contender, case.run.load) for case in session.drains):
        cases = [case for case in session.drains if (case.run.contender, case.run.load) == key]
        found += drain_figures(cases, owned="bare" not in key[1], large=large)
    if session.webhooks:
        found += webhook_figures(session.webhooks, session.creations)
    return found


def print_tables(session: Session, console: Console) -> None:
    """Print figures against bars, CPU by service, API writes, and failures."""
    table = Table(title="Figures (medians) against their bars")
    for column in ("what", "figure"):
        table.add_column(column)
    for column in ("value", "bar", "runs", ""):
        table.add_column(column, justify="right")
    group = ""
    for figure in figures_of(session):
        if group not in ("", figure.group):
            table.add_section()
        name = figure.group if figure.group != group else ""
        group = figure.group
        style = {None: "", True: "green", False: "bold red"}[figure.passed]
        table.add_row(name, *_cells(figure), style=style)
    console.print(table)
    rows = _cost_rows(session)
    if rows:
        costs = Table(title="CPU seconds per 10,000 pods by process, start included")
        costs.add_column("process")
        for load in _loads(session):
            costs.add_column(load, justify="right")
        for role, cells in rows:
            costs.add_row(role, *cells)
        console.print(costs)
    for line in _writes(session):
        console.print(line, highlight=False)
    for failure in session.failures:
        console.print(
            f"FAILED {failure.contender}: {failure.what}: {failure.why}", style="bold red"
        )


def markdown(session: Session) -> str:
    """The same as Markdown."""
    lines = ["| what | figure | value | bar | runs | |", "| --- | --- | ---: | ---: | ---: | --- |"]
    lines += [f"| {each.group} | {' | '.join(_cells(each))} |" for each in figures_of(session)]
    rows = _cost_rows(session)
    if rows:
        loads = _loads(session)
        lines += ["", "CPU seconds per 10,000 pods by process, start included:", ""]
        lines += [f"| process | {' | '.join(loads)} |", f"| --- |{' ---: |' * len(loads)}"]
        lines += [f"| {role} | {' | '.join(cells)} |" for role, cells in rows]
    lines += ["", *(f"* {line}" for line in _writes(session))]
    lines += [f"* FAILED {each.contender}: {each.what}: {each.why}" for each in session.failures]
    return "\n".join(lines)


def missed(session: Session) -> list[Figure]:
    """The figures below their bars."""
    return [figure for figure in figures_of(session) if figure.passed is False]


def _cells(figure: Figure) -> list[str]:
    bar = ""
    if figure.bar is not None:
        bar = f"{'≥' if figure.at_least else '≤'} {number(figure.bar)}"
    verdict = {None: "", True: "ok", False: "MISSED"}[figure.passed]
    value = f"{number(figure.value)} {figure.unit}".rstrip()
    return [figure.name, value, bar, str(figure.runs), verdict]


def number(value: float) -> str:
    """A number with about three digits that count."""
    if abs(value) >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.2f}" if abs(value) < 10 else f"{value:.1f}"


def _loads(session: Session) -> list[str]:
    return list(dict.fromkeys(_title(case.run.contender, case.run.load) for case in session.drains))


def _title(contender: str, load: str) -> str:
    return load if contender == "tutti" else f"{load} ({contender})"


def _cost_rows(session: Session) -> list[tuple[str, list[str]]]:
    columns = [
        cpu_by_role(
            case.run for case in session.drains if _title(case.run.contender, case.run.load) == load
        )
        for load in _loads(session)
    ]
    roles = dict.fromkeys(role for column in columns for role in column)
    rows = [
        (role, [f"{column[role]:.2f}" if role in column else "" for column in columns])
        for role in roles
    ]
    if rows:
        rows.append(("all", [f"{sum(column.values()):.2f}" for column in columns]))
    return rows


def _writes(session: Session) -> Iterable[str]:
    """API writes of the first run of each drain, the most frequent ones by name."""
    seen = set()
    for case in session.drains:
        title = _title(case.run.contender, case.run.load)
        if title in seen:
            continue
        seen.add(title)
        most = list(case.run.writes.items())[:5]
        named = ", ".join(f"{name} {count / case.run.pods:.3f}" for name, count in most)
        yield f"API writes per pod, drain {title}: {case.run.writes_per_pod:.3f} ({named})"
