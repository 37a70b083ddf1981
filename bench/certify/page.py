"""The page: commit, versions, machine, how each part ended, and the figures of the drains.

It reports, it does not judge: what failed, was missed or could not run stands on it too.
"""

from collections.abc import Sequence

from bench import report
from bench.bars import Figure
from bench.certify.running import Ended
from bench.session import Session


def certificate(
    ended: Sequence[Ended],
    left_out: Sequence[str],
    found: Session | None,
    *,
    title: str,
    commit: str,
    note: str = "",
) -> str:
    """Return the page.

    Args:
        ended: How each part that was run ended, in the order of running.
        left_out: Names of parts that were not run.
        found: What the drains measured; None when they did not get so far.
        title: The page's title.
        commit: What was tried; where a part ran before, on the same code, its row names that one.
        note: What a reader of the figures must know.
    """
    lines = [f"# {title}", "", f"* commit: `{commit}`"]
    lines += _circumstances(found) if found else ["* bars: the drains have no figures"]
    lines += [f"* not run: {'; '.join([*left_out, *_unmeasured(found)]) or 'nothing'}"]
    lines += [f"* note: {note}"] if note else []
    lines += ["", "| part | ended | minutes | its last line |", "| --- | --- | ---: | --- |"]
    lines += [_row(one, commit) for one in ended]
    if found:
        lines += [
            "",
            "How each figure is taken: [benchmarks](../benchmarks.md). All runs, with every "
            "process and every yardstick: the JSON file of the same name.",
            "",
            report.markdown(found),
        ]
    return "\n".join([*lines, ""])


def _circumstances(found: Session) -> list[str]:
    machine = found.machine
    memory_gib = int(machine["memory_bytes"]) / 2**30
    return [
        f"* machine: {machine['cores']} x {machine['cpu']}, {memory_gib:.0f} GiB, load average "
        f"{machine['load_average']} before, {machine.get('load_average_after', 'unknown')} after",
        f"* versions: {', '.join(f'{name} {what}' for name, what in found.versions.items())}",
        f"* cluster: kube-apiserver and etcd (without fsync), {found.nodes} nodes, no kubelets; "
        "server, suite and benchmark share the machine",
        f"* drains: {found.runs} runs of each, {found.took_s / 60:.0f} minutes",
        f"* bars missed by them: {_listed(report.missed(found))}",
    ]


def _unmeasured(found: Session | None) -> list[str]:
    """What the drains leave out, and why."""
    if found is None:
        return []
    left_out = [f"{each.contender}'s {each.what} ({each.why})" for each in found.failures]
    if not any(case.run.contender != "tutti" for case in found.drains):
        left_out.append("other schedulers (no binary was given)")
    return left_out


def _row(one: Ended, commit: str) -> str:
    how = one.how if one.how == "ok" else f"**{one.how}** ({one.status})"
    text = one.summary.replace("|", "\\|")
    if one.failed:
        text += f"; failed: {', '.join(one.failed)}"
    if one.skipped:
        text += f"; not run: {'; '.join(one.skipped)}"
    if one.commit not in ("", commit):
        text += f"; at {one.commit}, what it depends on is the same"
    return f"| {one.name} | {how} | {one.minutes:.0f} | {text} |"


def _listed(missed: Sequence[Figure]) -> str:
    return "; ".join(f"{each.group}, {each.name}" for each in missed) or "none"
