"""Only tests of this folder have nodes, images and releases built for them."""

from pathlib import Path
from typing import NamedTuple

from tests.realnodes.conftest import fixtures_here


class Collected(NamedTuple):
    """A collected test, as far as it matters here."""

    path: Path
    fixturenames: tuple[str, ...]


def test_fixtures_of_other_folders_build_nothing() -> None:
    here = Path(__file__)
    other = Collected(here.parents[1] / "console" / "test_console.py", ("cluster",))
    assert fixtures_here([other]) == set()
    assert fixtures_here([other, Collected(here, ("former",))]) == {"former"}
