"""Joins the standby planner's estimates to gangs as they are read. A gang's version does not change
for it.
"""

from typing import Final

from msgspec.structs import replace

from services.api.core.gang_book import GangEntry
from services.api.core.gang_objects import GangForms, forms_of, instant
from shared.contracts.questions import EstimatesAnswer, StartEstimate
from shared.contracts.visibility import ExpectedStart, Gang

#: Phases of gangs that wait. An answer may be older than the placement of a gang.
WAITING: Final = frozenset({"Pending", "Inqueue"})


class StartEstimates:
    """The estimates of one answer; None: of no gang."""

    def __init__(self, answer: EstimatesAnswer | None = None) -> None:
        self._as_of_ms: Final = 0 if answer is None else answer.as_of_ms
        estimates = () if answer is None else answer.estimates
        self._by_gang: Final = {estimate.gang_id: estimate for estimate in estimates}

    def join(self, entry: GangEntry, forms: GangForms) -> GangForms:
        """The forms of a gang with its estimate, which are made once for both; the same forms if
        the gang does not wait, or has no estimate.
        """
        estimate = self._by_gang.get(entry.verdict.gang_id)
        if estimate is None or entry.verdict.phase not in WAITING:
            return forms
        if forms.estimated is None or forms.estimated[0] is not estimate:
            forms.estimated = estimate, forms_of(self._with_estimate(forms.gang, estimate))
        return forms.estimated[1]

    def _with_estimate(self, gang: Gang, estimate: StartEstimate) -> Gang:
        expected = ExpectedStart(
            earliest=instant(estimate.earliest_ms),
            latest=instant(estimate.latest_ms),
            basis=estimate.basis,
            as_of=instant(self._as_of_ms),
        )
        status = replace(gang.status, position=estimate.position, expected_start=expected)
        return replace(gang, status=status)


NO_ESTIMATES: Final = StartEstimates()


async def no_estimates() -> StartEstimates:
    """The estimates where no planner is asked."""
    return NO_ESTIMATES
