"""The screenshots of docs/console.md, taken at one instant of one cluster: they can be compared.

`python -m tests.console.screenshots` takes them again, after a change that is meant.
"""

import asyncio
import base64
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from tests.console.browser import Tab, a_browser, a_tab
from tests.console.large_cluster import LargeCluster
from tests.console.toolchain import require_browser
from tests.services.api.serving import a_server

FOLDER: Final = Path(__file__).parents[2] / "docs" / "pictures"
#: Of the cluster, and of the browser.
_NOW: Final = datetime(2026, 3, 2, 9, 30, tzinfo=UTC)
#: Each screenshot's page, and a text of it that is not there before its data is.
_PAGES: Final = {
    "overview": ("overview", "fraud/train-10"),
    "gangs": ("gangs", "fraud/train-442"),
    "gang": ("gangs/vision/train-450", "What it waits for"),
    "map": ("map", "rack-31"),
    "timeline": ("timeline", "vision/train-0"),
}
NAMES: Final = ("queues", *_PAGES)
#: What each queue of the history uses more than at its beginning, two seconds apart.
_HISTORY: Final = (-100, -250, -500, -700, -650, -300, 40, 30)
#: Resolves with the share of pixels that differ visibly; 1 if the sizes do.
_COMPARE: Final = """
async screenshots => {
  const [one, other] = await Promise.all(screenshots.map(async base64 => {
    const bytes = Uint8Array.from(atob(base64), letter => letter.charCodeAt(0));
    const bitmap = await createImageBitmap(new Blob([bytes], {type: 'image/png'}));
    const canvas = new OffscreenCanvas(bitmap.width, bitmap.height);
    const context = canvas.getContext('2d');
    context.drawImage(bitmap, 0, 0);
    return context.getImageData(0, 0, bitmap.width, bitmap.height);
  }));
  if (one.width !== other.width || one.height !== other.height) return 1;
  let differing = 0;
  for (let at = 0; at < one.data.length; at += 4) {
    const differs = part => Math.abs(one.data[at + part] - other.data[at + part]) > 48;
    if (differs(0) || differs(1) || differs(2)) differing++;
  }
  return differing / (one.width * one.height);
}
"""


def documented(name: str) -> Path:
    """The file of a screenshot in the documentation."""
    return FOLDER / f"console-{name}.png"


@asynccontextmanager
async def a_photographer(folder: Path) -> AsyncIterator["Photographer"]:
    """A browser, and the cluster that it looks at."""
    cluster = LargeCluster(int(_NOW.timestamp() * 1000))
    async with a_server(cluster.serving, folder) as client, a_browser() as browser:
        yield Photographer(cluster, browser, client.url.partition("/apis")[0])


class Photographer:
    """Takes screenshots, and compares them."""

    def __init__(self, cluster: LargeCluster, browser: Any, origin: str) -> None:
        self._cluster = cluster
        self._browser = browser
        self._origin = origin

    async def take(self, name: str) -> bytes:
        """A screenshot of a page, as PNG."""
        async with a_tab(self._browser, self._origin) as tab:
            await tab.page.clock.set_fixed_time(_NOW)
            if name == "queues":
                await self._open_queues(tab)
            else:
                route, text = _PAGES[name]
                await tab.open(route)
                await tab.instant_of(text)
            return bytes(await tab.page.screenshot())

    async def difference(self, one: bytes, other: bytes) -> float:
        """The share of pixels that differ so much that a reader would see it, 0 to 1."""
        context = await self._browser.new_context()
        try:
            page = await context.new_page()
            screenshots = [base64.b64encode(each).decode() for each in (one, other)]
            return float(await page.evaluate(_COMPARE, screenshots))
        finally:
            await context.close()

    async def _open_queues(self, tab: Tab) -> None:
        await tab.open("queues?queue=robotics")
        for number, more in enumerate(_HISTORY, start=1):
            await tab.page.clock.set_fixed_time(_NOW + timedelta(seconds=2 * number))
            self._cluster.change_use(more)
            await tab.instant_of(f"gpu: {2_000 + 2 * more} used")


async def _take_all() -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with a_photographer(Path(folder)) as photographer:
            for name in NAMES:
                documented(name).write_bytes(await photographer.take(name))


if __name__ == "__main__":
    require_browser()
    asyncio.run(_take_all())
