"""A Chromium in which tests look at the console."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final, Literal

from tests.console.toolchain import CHROMIUM

#: A page that does not show a text until then is not going to.
TEXT_S: Final = 60.0
#: Notes when the page's title first says that it is current, in ms since the navigation.
_NOTE_SHOWN: Final = """
new MutationObserver(() => {
  if (window.shownMs === undefined && document.querySelector('h1 .badge.good')) {
    window.shownMs = performance.now();
  }
}).observe(document, {subtree: true, childList: true, characterData: true, attributes: true});
"""
#: Resolves with the instant (ms since the epoch) at which the main part of the page has a text.
_WHEN_SHOWN: Final = """
text => new Promise(resolve => {
  const main = document.querySelector('main');
  const look = () => {
    if (main.textContent.includes(text)) {
      observer.disconnect();
      // After the frame that has it was drawn.
      requestAnimationFrame(() => setTimeout(
        () => resolve(performance.timeOrigin + performance.now())));
    }
  };
  const observer = new MutationObserver(look);
  observer.observe(main, {subtree: true, childList: true, characterData: true, attributes: true});
  look();
})
"""


class Tab:
    """A page of the browser, what it complained about, and which other origins it asked."""

    def __init__(self, page: Any, origin: str) -> None:
        self.page = page
        self.origin = origin
        #: Errors of scripts, and violations of the policy.
        self.complaints: list[str] = []
        self.foreign: list[str] = []
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("console", self._on_console)
        page.on("request", self._on_request)

    def _on_console(self, message: Any) -> None:
        # Answers that refuse are logged by Chromium itself.
        if message.type == "error" and "Failed to load resource" not in message.text:
            self.complaints.append(message.text)

    def _on_request(self, request: Any) -> None:
        if not request.url.startswith(f"{self.origin}/"):
            self.foreign.append(request.url)

    async def open(self, route: str, *, token: str = "admin") -> None:
        """Load the console at a page, and wait until its content is current."""
        await self.page.goto("about:blank")
        if token:
            # As after a login: the address may have a token or a page.
            await self.page.goto(f"{self.origin}/console/licenses.txt")
            await self.page.evaluate("token => sessionStorage.setItem('tutti.token', token)", token)
        await self.page.goto(f"{self.origin}/console/#/{route}")
        await self._until("window.shownMs !== undefined")

    async def _until(self, condition: str) -> None:
        """Wait until a condition of the page is true. Not by Playwright's own means, which evaluate
        a string in the page, as the console's policy forbids.
        """
        await self.page.evaluate(
            f"""() => new Promise(resolve => {{
                  const timer = setInterval(() => {{
                    if ({condition}) {{ clearInterval(timer); resolve(); }}
                  }}, 10);
                }})"""
        )

    async def first_paint_ms(self) -> float:
        """Time from the navigation to the first content, as the browser measures it."""
        await self._until("performance.getEntriesByName('first-contentful-paint').length")
        return float(
            await self.page.evaluate(
                "performance.getEntriesByName('first-contentful-paint')[0].startTime"
            )
        )

    async def shown_ms(self) -> float:
        """Time from the navigation to the content with data of the API."""
        return float(await self.page.evaluate("window.shownMs"))

    async def instant_of(self, text: str) -> float:
        """When the page shows a text, in ms since the epoch. Raises TimeoutError: it does not."""
        async with asyncio.timeout(TEXT_S):
            return float(await self.page.evaluate(_WHEN_SHOWN, text))

    async def text(self) -> str:
        """The text of the page, as users see it."""
        return str(await self.page.evaluate("document.querySelector('main').innerText"))

    async def overflow_px(self, *, vertical: bool = False) -> int:
        """How much wider, or higher, the page is than the window."""
        side = "Height" if vertical else "Width"
        return int(
            await self.page.evaluate(
                f"document.documentElement.scroll{side} - document.documentElement.client{side}"
            )
        )


@asynccontextmanager
async def a_browser() -> AsyncIterator[Any]:
    """Chromium, without a window. `require_browser` was called before."""
    # Installed in the cache, not in .venv.
    from playwright.async_api import async_playwright  # pyright: ignore[reportMissingImports]

    async with async_playwright() as playwright:
        # The sandbox needs rights that root in a container lacks.
        browser = await playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--hide-scrollbars"], timeout=120_000
        )
        try:
            yield browser
        finally:
            await browser.close()


@asynccontextmanager
async def a_tab(
    browser: Any,
    origin: str,
    *,
    width: int = 1280,
    height: int = 900,
    scheme: Literal["light", "dark"] = "light",
) -> AsyncIterator[Tab]:
    """A page with a session of its own."""
    context = await browser.new_context(
        ignore_https_errors=True,
        viewport={"width": width, "height": height},
        color_scheme=scheme,
        reduced_motion="reduce",
    )
    context.set_default_timeout(60_000)
    await context.add_init_script(_NOTE_SHOWN)
    try:
        yield Tab(await context.new_page(), origin)
    finally:
        await context.close()
