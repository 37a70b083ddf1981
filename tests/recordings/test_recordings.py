"""Refactoring changes no decision: tapes of the planner before issue 16, played to the present one.

The tapes go when that issue ends. `python -m tests.recordings` took them at commit 644eef1; seeds
1, 13 and 21 again when gangs whose eviction was refused began to be assessed again; seeds 4 and 18
again when gangs that wait for an outcome began to count as demand of their queues.
"""

from pathlib import Path
from typing import Any

import pytest

from tests.recordings.tape import (
    Call,
    Difference,
    Tape,
    play,
    read_tapes,
    says_the_same,
    taping,
)

FILES = sorted(Path(__file__).with_name("tapes").glob("*.tapes.xz"))


@pytest.mark.parametrize("path", FILES, ids=[path.name.partition(".")[0] for path in FILES])
def test_the_planner_decides_as_the_tape_says(path: Path) -> None:
    assert sum(play(tape) for tape in read_tapes(path)) > 0


def test_another_decision_is_a_difference() -> None:
    (tape, *_) = read_tapes(FILES[0])
    at, call = next((at, call) for at, call in enumerate(tape.calls) if call.decisions)
    without = Call(call.method, call.arguments, (), call.notes, call.verdicts, call.next_wakeup_ms)
    with pytest.raises(Difference, match="decisions: "):
        play(Tape([*tape.calls[:at], without]))


def test_a_played_tape_tapes_the_same_calls() -> None:
    (tape, *_) = read_tapes(FILES[0])
    with taping() as tapes:
        play(tape)
    assert [each.calls for each in tapes] == [tape.calls]


def verdict(*shapes: dict[str, Any], **fields: Any) -> dict[str, Any]:
    why = {"reason": "NotEnoughResources", "shapes": list(shapes)}
    return {"namespace": "n", "name": "g", "why": why, **fields}


def report(wanted: int = 1, *, fit: int = 0, reason: str = "", role: str = "w") -> dict[str, Any]:
    reasons = [{"reason": reason, "count": 2}] if reason else []
    return {"role": role, "wanted": wanted, "fit": fit, "nodes": 3, "reasons": reasons}


FEW = "cannot allocate all claims"
TAPED = verdict(report(fit=1), report(fit=1, reason=FEW), report(2, role="x"))


@pytest.mark.parametrize(
    ("found", "same"),
    [
        pytest.param(TAPED, True, id="equal"),
        pytest.param(verdict(report(2, fit=1, reason=FEW), report(2, role="x")), True, id="joined"),
        pytest.param(verdict(report(3, fit=1, reason=FEW), report(2, role="x")), False, id="more"),
        pytest.param(verdict(report(2, fit=1), report(2, role="x")), False, id="no reason"),
        pytest.param(verdict(report(2, reason=FEW), report(2, role="x")), False, id="none fits"),
        pytest.param(
            verdict(report(2, fit=1, reason=FEW), report(2, fit=1, role="x")),
            False,
            id="of another role",
        ),
        pytest.param(
            verdict(report(fit=1), report(reason=FEW), report(2, role="x")),
            False,
            id="not joined",
        ),
        pytest.param(
            verdict(report(2, fit=1, reason=FEW), report(2, role="x"), phase="Running"),
            False,
            id="of another phase",
        ),
    ],
)
def test_reports_of_single_members_may_be_joined_for_gangs_with_claims(
    found: dict[str, Any], same: bool
) -> None:
    assert says_the_same(TAPED, found, {("n", "g")}) == same
    assert says_the_same(TAPED, found, set()) == (found is TAPED)
