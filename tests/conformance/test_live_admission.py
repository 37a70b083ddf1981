"""Volcano's recorded admission answers on a real API server with our CRDs and our webhook."""

from pathlib import Path

import pytest

from tests.conformance.live_admission import Played, play
from tests.conformance.recordings import themes
from tests.controlplane.client import RawClient

pytestmark = pytest.mark.integration

#: What differs, and why. `docs/compatibility.md` tells users.
DIFFERENT = {
    "job/defaults-scheduler-kept": "another scheduler's job is none of our business",
    "job/schema-scheduler-name-dotted": "another scheduler's job is none of our business",
    "job/numa-thousand-milli": "a quantity is left as it was written",
    "job/depends-empty-names": "what was written is left: an empty list",
    "queue/update-parent-cycle": "a queue that is its own ancestor is a mistake",
    "queue/defaults-no-spec": "Volcano's patch fails with 500; ours makes the spec",
}
#: Plays in every run: each kind, each way of being refused.
FIXED = (
    r"^(pod|hypernode|command)/|^cronjob/(schedule|zone)|^jobflow/(un|ri)|^podgroup/(queue|name)|"
    r"^queue/(delete|quantity|anno)|"
    r"^job/(policy-e|plugin-[mu]|volume|numa|defaults|update-[rt]|template-[trd]|depends-e)"
)


async def played(api: RawClient, only: str) -> list[Played]:
    return [
        one
        for theme in themes("admission")
        async for one in play(api, theme.partition("/")[2], only)
    ]


@pytest.mark.timeout(240)
async def test_a_part_of_each_kinds_cases_is_answered_as_volcano_answers(
    scheduler_conf: Path, api: RawClient
) -> None:
    found = await played(api, FIXED)
    assert len(found) > 250
    wrong = {one.key: one for one in found if one.differs and one.key not in DIFFERENT}
    assert not wrong


@pytest.mark.certify
@pytest.mark.timeout(900)
async def test_every_recorded_case_is_answered_as_volcano_answers(
    scheduler_conf: Path, api: RawClient
) -> None:
    found = await played(api, "")
    assert len(found) == 730
    assert {one.key: one for one in found if one.differs}.keys() == DIFFERENT.keys()
