"""The lists of mutants do not rot, and the command notices what it must."""

import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.mutation.coverage import TESTS, Called, callers_of, files_of
from tests.mutation.patching import NotPatchable, changes_of
from tests.mutation.table import AREAS, ROOT, InvalidList, Mutant, parse, read_lists, source_of

CANARIES = Path(__file__).parent / "canaries"
CANARY_TESTS = (
    "tests/services/binder/core/test_window.py",
    "tests/mutation/test_mutation.py::test_a_warning_that_a_mark_ignores_fails_no_test",
)
WINDOW = Mutant(
    area="binder",
    path="services/binder/core/window.py",
    promise="The window never closes.",
    anchor="max(1.0, self._size / 2)",
    replacement="self._size / 2",
)


def test_every_mutant_can_be_made() -> None:
    """A text that the product no longer has, or has twice, would be a mutant that is not tried."""
    problems: list[str] = []
    for mutant in read_lists():
        try:
            changes_of(mutant)
        except (InvalidList, NotPatchable) as invalid:
            problems.append(f"{mutant.promise}: {invalid}")
    assert not problems, "\n".join(problems)


def test_every_area_has_mutants_each_once_and_every_file_has_tests() -> None:
    mutants = read_lists()
    assert {one.area for one in mutants} == set(AREAS)
    changes = [(one.path, one.anchor, one.replacement) for one in mutants]
    assert len(set(changes)) == len(changes)
    assert set(TESTS) == set(AREAS)
    for mutant in mutants:
        assert all((ROOT / one).exists() for one in files_of(TESTS[mutant.area], [mutant.path]))


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        (replace(WINDOW, anchor="self._size"), "not once"),
        (replace(WINDOW, anchor="what is not there"), "occurs 0 times"),
        (replace(WINDOW, path="services/gone.py"), "occurs 0 times"),
        (replace(WINDOW, replacement=WINDOW.anchor), "changes nothing"),
        (replace(WINDOW, replacement="max(1.0,"), "is no Python"),
    ],
)
def test_a_mutant_that_cannot_be_made_is_named(changed: Mutant, words: str) -> None:
    with pytest.raises(InvalidList, match=words):
        source_of(changed)


@pytest.mark.parametrize(
    "text", ["* A promise.\n- a\n+ b\n", "## a.py\n* A promise.\n- a\n", "## a.py\n* One.\nx\n"]
)
def test_an_entry_without_its_parts_is_refused(text: str) -> None:
    with pytest.raises(InvalidList, match=r"promise|One"):
        list(parse(text, "binder"))


def test_a_text_may_have_several_lines_and_its_reason_too() -> None:
    text = "## a.py\n* One.\n- if a:\n    b()\n+ pass\n= because\n of it\n* Two.\n- c\n+\n"
    one, two = parse(text, "binder")
    assert (one.anchor, one.replacement, one.equivalent) == (
        "if a:\n    b()",
        "pass",
        "because\n of it",
    )
    assert (two.path, two.anchor, two.replacement, two.equivalent) == ("a.py", "c", "", "")


@pytest.mark.parametrize(
    ("anchor", "replacement", "functions"),
    [
        (WINDOW.anchor, WINDOW.replacement, ("Window.overrun",)),
        ("return int(self._size)", "return 1", ("Window.width",)),
    ],
)
def test_the_functions_that_a_mutant_changes_are_known(
    anchor: str, replacement: str, functions: tuple[str, ...]
) -> None:
    changes = changes_of(replace(WINDOW, anchor=anchor, replacement=replacement))
    assert changes.functions == functions
    assert not changes.values


def test_a_mutant_meets_the_tests_that_call_what_it_changes_the_shortest_first() -> None:
    path = WINDOW.path
    overrun, width = (path, "Window.overrun"), (path, "Window.width")
    calls = [
        Called("long", 3.0, frozenset({overrun, width})),
        Called("other", 1.0, frozenset({width})),
        Called("short", 2.0, frozenset({overrun})),
        Called("elsewhere", 0.1, frozenset({("a.py", "Window.overrun")})),
    ]
    assert callers_of(calls, path, ["Window.overrun"], whole_file=False) == ["short", "long"]
    assert callers_of(calls, path, [], whole_file=True) == ["other", "short", "long"]


@pytest.mark.filterwarnings("ignore:Ignored by a mark")
def test_a_warning_that_a_mark_ignores_fails_no_test() -> None:
    # `test_the_canary_dies...` has the command run this test, too.
    warnings.warn("Ignored by a mark", DeprecationWarning, stacklevel=1)


@pytest.mark.slow
def test_the_canary_dies_and_a_mutant_that_changes_nothing_is_reported() -> None:
    command = [sys.executable, "-m", "tests.mutation", "--lists", str(CANARIES), "--tests"]
    ran = subprocess.run(
        [*command, *CANARY_TESTS], cwd=ROOT, capture_output=True, text=True, timeout=50
    )
    assert ran.returncode == 1, ran.stderr
    dead, survives, equivalent, *_ = sorted(
        line for line in ran.stdout.splitlines() if " tests  services/" in line
    )
    assert dead.startswith("dead"), ran.stdout
    assert "test_window.py::" in dead
    assert survives.startswith("survives")
    assert equivalent.startswith("survives")
    assert "\nsurvives: services/binder/core/window.py: No request was sent" in ran.stdout
    summary = ran.stdout.splitlines()[-1]
    assert summary == "1 of 2 mutants die (50.0 %), 1 survive, 1 more are equivalent"
