"""Limits of what users have open."""

import re

import pytest

from services.api.errors import RequestFailed
from services.api.user_limits import UserLimits


def test_limits_of_what_is_open_are_of_each_user_and_of_all() -> None:
    limits = UserLimits("questions", in_all=3, of_user=2, retry_s=1)
    with limits.one_more("a"), limits.one_more("a"):
        rule = re.escape("too many questions: the user a may have at most 2")
        with pytest.raises(RequestFailed, match=rule) as refused, limits.one_more("a"):
            pass
        assert (refused.value.status, refused.value.retry_after_s) == (429, 1)
        with limits.one_more("b"):
            rule = re.escape("too many questions: all users together may have at most 3")
            with pytest.raises(RequestFailed, match=rule), limits.one_more("c"):
                pass
        with limits.one_more("c"):
            pass
    with limits.one_more("a"):
        pass


def test_a_long_name_is_cut_in_the_message() -> None:
    limits = UserLimits("questions", in_all=3, of_user=0, retry_s=1)
    with pytest.raises(RequestFailed) as refused, limits.one_more("x" * 100_000):
        pass
    assert len(refused.value.message) < 250
