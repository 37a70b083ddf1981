"""Patterns mean what Go takes them for, and cost what Go lets them cost."""

import pytest

from shared.kinds.patterns import CHARACTERS_MAX, Pattern, PatternError

NAMES = ("node-1", "node-12", "rack-7", "")


@pytest.mark.parametrize(
    ("pattern", "chosen"),
    [
        ("^node-1$", {"node-1"}),
        ("1", {"node-1", "node-12"}),
        ("", set(NAMES)),
        ("^$", {""}),
        ("[^1]$", {"node-12", "rack-7"}),
        ("(?i)RACK", {"rack-7"}),
        (r"\Anode", {"node-1", "node-12"}),
        (r"2\z|^rack", {"node-12", "rack-7"}),
        ("node|rack", {"node-1", "node-12", "rack-7"}),
        (r"\pL-[[:digit:]]$", {"node-1", "rack-7"}),
        ("(?P<n>e)-(?<m>1)$", {"node-1"}),
    ],
)
def test_a_pattern_chooses_names_as_go_does(pattern: str, chosen: set[str]) -> None:
    assert Pattern(pattern).among(NAMES) == chosen


def test_no_name_is_chosen_for_what_its_neighbour_has() -> None:
    """All names are searched as one text: a match must not begin in one and end in the next."""
    names = ("a", "b", "c\nd")
    for pattern in ("a.b", r"a\sb", "a[^x]b", "(?s)a.b", "a\nb"):
        assert Pattern(pattern).among(names[:2]) == frozenset(), pattern
    assert Pattern("^d").among(names) == frozenset(), "nor a line within a name"


@pytest.mark.parametrize(
    "pattern",
    [
        "(",
        "a)(b",
        "n[",
        "(?=a)",
        "(?<=a)b",
        r"(a)\1",
        "a++",
        "((a{99}){99})",
        # RE2 itself would take it: it has a limit of 8 MiB.
        r"\pL{100}",
        "x" * (CHARACTERS_MAX + 1),
        "\ud800",
    ],
)
def test_what_go_or_we_do_not_take_is_refused(pattern: str) -> None:
    with pytest.raises(PatternError) as refused:
        Pattern(pattern)
    assert str(refused.value), "and it is said why"


def test_a_pattern_that_stops_other_engines_takes_no_time() -> None:
    """Python's own engine would take longer than the universe has existed, for the first name."""
    names = [f"{'a' * 250}{letter}b" for letter in "bcd"]
    for pattern in ("(a+)+$", "(a|aa)+$", "(a|a)*c$", "(.*a){20}$"):
        assert Pattern(pattern).among(names) == frozenset()
