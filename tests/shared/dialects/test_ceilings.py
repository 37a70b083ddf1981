"""Every duration that a user may write either has a ceiling, or a reason why it needs none."""

import pytest

from shared.contracts import annotations
from shared.dialects import ceilings
from shared.dialects.ceilings import LIMITED, UNLIMITED, Ceilings
from shared.dialects.settings import SETTINGS
from tests.support.golden import Golden

#: Every annotation whose name says that its value is a time.
_DURATIONS = sorted(
    value
    for name, value in vars(annotations).items()
    if name.isupper() and isinstance(value, str) and value.endswith(("-seconds", "-time"))
)


@pytest.mark.parametrize("key", _DURATIONS)
def test_a_duration_has_a_ceiling_or_a_reason_why_it_acts_on_no_other_gang(key: str) -> None:
    assert (key in LIMITED) != (key in UNLIMITED)


def test_every_setting_in_seconds_is_found() -> None:
    assert {key for key in SETTINGS if key.endswith("-seconds")} <= set(_DURATIONS)


@pytest.mark.parametrize("key", sorted(LIMITED))
def test_a_ceiling_is_a_field_that_the_operator_sets(key: str) -> None:
    chosen = Ceilings(hold_s=1, reserve_s=1, repair_deadline_s=1, minimum_run_s=1)
    assert chosen.of(key) == 1
    assert (Ceilings().of(key) or 0) >= 600


def test_a_sentence_names_the_given_value_the_ceiling_and_its_flag(golden: Golden) -> None:
    golden(ceilings.in_words("metadata.x", 7, 5, annotations.REPAIR_DEADLINE_SECONDS))
