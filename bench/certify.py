"""``python -m bench.certify``: what an issue reached, with its evidence, as a page under docs/.

Runs the benchmarks and the tests marked `certify`, and writes docs/certificates/<date>-issue<N>.md
with commit, versions, machine and figures, and beside it the same session as JSON. What failed, was
missed or could not run stands on the page too: a certificate tells, it does not judge.
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec
import uvloop

from bench import report, session
from bench.bars import Figure
from bench.contenders import Contender, Rival, Tutti
from bench.session import DRAINS, Plan, Session

ROOT = Path(__file__).parents[1]
CERTIFICATES_DIR = ROOT / "docs" / "certificates"
#: pytest's exit status for "nothing was selected".
_NO_TESTS = 5
_TESTS_TIMEOUT_S = 7200.0


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """How the tests marked `certify` ended."""

    passed: bool
    summary: str


def main() -> None:
    """Measure, test, write the page; fails when a run or a test did."""
    parser = argparse.ArgumentParser(prog="python -m bench.certify", description=__doc__)
    parser.add_argument("--issue", type=int, default=4)
    parser.add_argument("--runs", type=int, default=3, help="runs of each benchmark (medians)")
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--session", type=Path, metavar="FILE", help="take the figures from here")
    parser.add_argument("--note", default="", help="what a reader of the figures must know")
    parser.add_argument(
        "--rival", action="append", default=[], metavar="NAME=PATH", help="see python -m bench"
    )
    arguments = parser.parse_args()
    if arguments.session is not None:
        found = msgspec.json.decode(arguments.session.read_bytes(), type=Session)
    else:
        rivals: list[Contender] = []
        for each in arguments.rival:
            name, _, path = each.partition("=")
            rivals.append(Rival(name=name, binary=Path(path).absolute()))
        plan = Plan(
            nodes=arguments.nodes,
            runs=arguments.runs,
            drains=DRAINS,
            with_live=True,
            with_webhook=True,
            contenders=[Tutti(), *rivals],
        )
        found = uvloop.run(session.run(plan, lambda line: print(line, flush=True)))
    tested = run_tests()
    stem = CERTIFICATES_DIR / f"{found.started_at[:10]}-issue{arguments.issue}"
    CERTIFICATES_DIR.mkdir(parents=True, exist_ok=True)
    stem.with_suffix(".json").write_bytes(
        msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n"
    )
    page = stem.with_suffix(".md")
    page.write_text(certificate(found, tested, issue=arguments.issue, note=arguments.note))
    print(page.relative_to(ROOT))
    if found.failures or not tested.passed:
        sys.exit(1)


def run_tests() -> Verdict:
    """Run the tests marked `certify`; those that draw examples draw fresh ones."""
    command = [sys.executable, "-m", "pytest", "-m", "certify", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(
        command,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=_TESTS_TIMEOUT_S,
        env={**os.environ, "HYPOTHESIS": "fresh"},
    )
    if done.returncode == _NO_TESTS:
        return Verdict(passed=True, summary="no test is marked `certify`")
    lines = done.stdout.strip().splitlines() or ["no output"]
    failed = [line for line in lines if line.startswith(("FAILED", "ERROR"))]
    return Verdict(passed=done.returncode == 0, summary="; ".join([lines[-1].strip("= "), *failed]))


def certificate(found: Session, tested: Verdict, *, issue: int, note: str = "") -> str:
    """Return the page."""
    machine = found.machine
    memory_gib = int(machine["memory_bytes"]) / 2**30
    missed = report.missed(found)
    lines = [
        f"# Issue {issue}, {found.started_at[:10]}",
        "",
        f"* commit: `{found.commit}`",
        f"* machine: {machine['cores']} x {machine['cpu']}, {memory_gib:.0f} GiB, load average "
        f"{machine['load_average']} before, {machine.get('load_average_after', 'unknown')} after",
        f"* versions: {', '.join(f'{name} {what}' for name, what in found.versions.items())}",
        f"* cluster: kube-apiserver and etcd (without fsync), {found.nodes} nodes, no kubelets; "
        "server, suite and benchmark share the machine",
        f"* benchmarks: {found.runs} runs of each, {found.took_s / 60:.0f} minutes",
        f"* tests marked `certify`: {tested.summary}",
        f"* bars missed: {_listed(missed)}",
        f"* not run: {not_run(found)}",
        *([f"* note: {note}"] if note else []),
        "",
        "How each figure is taken: [benchmarks](../benchmarks.md). All runs, with every process "
        "and every yardstick: the JSON file of the same name.",
        "",
        report.markdown(found),
        "",
    ]
    return "\n".join(lines)


def not_run(found: Session) -> str:
    """What the session leaves out, and why."""
    left_out = [f"{each.contender}'s {each.what} ({each.why})" for each in found.failures]
    if not any(case.run.contender != "tutti" for case in found.drains):
        left_out.append("rivals (no binary was given)")
    return "; ".join(left_out) or "nothing"


def _listed(missed: Sequence[Figure]) -> str:
    return "; ".join(f"{each.group}, {each.name}" for each in missed) or "none"


if __name__ == "__main__":
    main()
