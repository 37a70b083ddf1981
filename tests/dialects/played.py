"""Fixtures' work: plays the cases that the session's tests ask for, on one cluster."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TypeAlias, cast

import pytest

from services.gang_planner.recorder import list_segments, read_segment
from services.gang_planner.replay.reproduction import reproduce
from tests.dialects.cases import Case
from tests.dialects.clusters import Cluster
from tests.dialects.playing import play_all

Outcomes: TypeAlias = dict[str, Exception | None]


def outcomes(
    start: Callable[[Path], AbstractAsyncContextManager[Cluster]],
    folder: Path,
    request: pytest.FixtureRequest,
) -> Outcomes:
    """The outcomes of all cases that tests of the requesting module were selected for."""
    cases = [
        cast("Case", item.callspec.params["case"])
        for item in request.session.items
        if isinstance(item, pytest.Function)
        and item.module is request.module
        and "case" in getattr(getattr(item, "callspec", None), "params", {})
    ]

    async def played() -> Outcomes:
        async with start(folder) as cluster:
            return await play_all(cluster, cases)

    return asyncio.run(played())


def judge(found: Outcomes, case: Case) -> None:
    """Fail as the case failed."""
    error = found[case.name]
    if error is not None:
        raise error


def judge_recordings(folder: Path) -> None:
    """Fail unless what the standbys recorded replays byte for byte. A planner that became active
    before the first decision has recorded none.
    """
    segments = [
        segment
        for recording in (folder / "up" / "data" / "recordings").iterdir()
        for segment in list_segments(recording)
    ]
    reports = [reproduce(read_segment(segment)) for segment in segments]
    assert [report.differences for report in reports] == [[] for _ in segments]
    assert any(report.equal for report in reports)
