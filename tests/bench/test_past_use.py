"""The benchmark of past use."""

import msgspec
import pytest

from bench import past_use


@pytest.mark.slow
@pytest.mark.parametrize("case", past_use.CASES[-2:], ids=lambda case: case.name)
def test_shares_settle_within_the_bar(case: past_use.Case) -> None:
    result = past_use.measure(case)
    (figure,) = past_use.figures([result])
    assert figure.passed, figure
    missed = msgspec.structs.replace(result, settled=0.6)
    assert past_use.figures([missed])[0].passed is False
