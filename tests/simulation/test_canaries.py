"""Checkers bite: every planted bug is caught, and what was found once stays mended.

`make test` begins each search at the seed that found the bug last, so each checker is shown once in
seconds. `make certify` begins it at the start of the range: the number of seeds that it may take
shows how likely the checker is to find such a bug.
"""

import pytest

from tests.simulation.canaries import CANARIES
from tests.simulation.planting import FIRST_SEED
from tests.simulation.processes import simulate
from tests.simulation.regressions import SEEDS as MENDED

pytestmark = pytest.mark.slow

#: Bugs whose worlds take ten seconds of CPU and more: `make certify` plants them. `test_claims` and
#: `test_allocation_checkers` show their checkers their cases.
LONG = {
    "capacity_ignored",
    "choices_forgotten",
    "constraints_ignored",
    "counters_ignored",
    "device_taints_ignored",
    "former_pods_claim_used",
    "selected_node_taken_off",
    "volume_limits_ignored",
}

#: Bugs that break the same promise as another one here, which shows that its checker bites.
SEEN_AS_ANOTHER = {
    "ack_before_the_effect",
    "answers_not_taken_off",
    "devices_not_given_out",
    "half_a_gang",
    "hold_never_closed",
    "preemption_without_end",
    "release_forgotten",
    "replay_off_by_one",
}
IN_CERTIFY = LONG | SEEN_AS_ANOTHER


# The exact interleaving is a unit test beside the code that was mended.
@pytest.mark.certify
@pytest.mark.parametrize("name", MENDED)
def test_a_bug_that_was_found_once_stays_mended(name: str) -> None:
    done = simulate("--seed", str(MENDED[name]))
    assert done.returncode == 0, done.stdout


@pytest.mark.timeout(400)
@pytest.mark.parametrize("name", [name for name in CANARIES if name not in IN_CERTIFY])
def test_a_planted_bug_is_caught(name: str) -> None:
    done = simulate("--canary", name, "--first", str(CANARIES[name].first), limit_s=350.0)
    assert done.returncode == 0, done.stdout


@pytest.mark.certify
@pytest.mark.timeout(1900)
@pytest.mark.parametrize(
    "name",
    [name for name in CANARIES if name in IN_CERTIFY or CANARIES[name].first != FIRST_SEED],
)
def test_a_planted_bug_is_caught_within_its_number_of_seeds(name: str) -> None:
    done = simulate("--canary", name, "--first", str(FIRST_SEED), limit_s=1800.0)
    assert done.returncode == 0, done.stdout
