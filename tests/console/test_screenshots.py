"""The console looks as its documentation shows it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.console.screenshots import NAMES, Photographer, a_photographer, documented
from tests.console.toolchain import require_browser
from tests.support.packages import ROOT

pytestmark = [pytest.mark.certify, pytest.mark.slow, pytest.mark.timeout(300)]

TAKEN = ROOT / "build" / "console"
#: Of all pixels: a few words. Another Chromium may draw the edges of letters differently.
DIFFERENCE_MAX = 0.002


@pytest.fixture(scope="module", autouse=True)
def _needed() -> None:
    require_browser()
    TAKEN.mkdir(parents=True, exist_ok=True)


@pytest.fixture
async def photographer(tmp_path: Path) -> AsyncIterator[Photographer]:
    async with a_photographer(tmp_path) as found:
        yield found


@pytest.mark.parametrize("name", NAMES)
async def test_a_page_looks_as_in_the_documentation(photographer: Photographer, name: str) -> None:
    taken = await photographer.take(name)
    (TAKEN / f"console-{name}.png").write_bytes(taken)
    different = await photographer.difference(taken, documented(name).read_bytes())
    assert different <= DIFFERENCE_MAX, (
        f"{different:.1%} of {name} looks different: compare {TAKEN / f'console-{name}.png'} with "
        f"{documented(name)}; if it is meant, run python -m tests.console.screenshots"
    )


async def test_a_changed_page_is_seen(photographer: Photographer) -> None:
    gangs, gang = await photographer.take("gangs"), await photographer.take("gang")
    assert await photographer.difference(gangs, gangs) == 0
    assert await photographer.difference(gangs, gang) > 4 * DIFFERENCE_MAX
