"""The console of `tutti demo` in a real Chromium, on the embedded cluster."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

from tests.console.browser import a_browser, a_tab
from tests.console.toolchain import require_browser
from tutti.lifeline import dying_with_parent

pytestmark = [pytest.mark.certify, pytest.mark.slow, pytest.mark.timeout(300)]

PICTURES = Path(__file__).parents[2] / "build" / "console"


@pytest.fixture(scope="module", autouse=True)
def _needed() -> None:
    require_browser()
    PICTURES.mkdir(parents=True, exist_ok=True)


async def test_the_address_that_the_demo_prints_leads_to_its_gangs(tmp_path: Path) -> None:
    demo = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tutti.cli", "demo", "--fast", "--keep"),
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(tmp_path), "COLUMNS": "400"},
        preexec_fn=dying_with_parent(),
    )
    assert demo.stdout is not None
    try:
        line = ""
        while not line.startswith("The console: "):
            line = (await demo.stdout.readline()).decode()
            assert line, "the demo ended"
        address = line.removeprefix("The console: ").strip()
        origin, _, token = address.partition("/console/#token=")
        async with a_browser() as browser, a_tab(browser, origin) as tab:
            await tab.page.goto(address)
            await tab.instant_of("default/gang-scheduling-podgroup2")
            await tab.page.screenshot(path=str(PICTURES / "demo-overview.png"))
            await tab.open("gangs/default/gang-scheduling-podgroup2", token=token)
            await tab.instant_of("2 more nvidia.com/gpu needed")
            assert tab.complaints == []
            assert tab.foreign == []
    finally:
        demo.terminate()
        await demo.communicate()
