"""One picture after the other."""

import io
from collections.abc import AsyncIterator

from rich.console import Console, RenderableType

from tutti.redrawing import redraw


async def three() -> AsyncIterator[RenderableType]:
    for picture in ("one", "two", "three"):
        yield picture


async def test_what_is_no_terminal_gets_every_picture() -> None:
    text = io.StringIO()
    await redraw(three(), Console(file=text))
    assert text.getvalue() == "one\ntwo\nthree\n"


async def test_a_terminal_is_given_back_with_the_last_picture_on_it() -> None:
    text = io.StringIO()
    await redraw(three(), Console(file=text, force_terminal=True, width=20, height=5))
    left_alternate_screen = "\x1b[?1049l"
    during, _, after = text.getvalue().partition(left_alternate_screen)
    assert "two" in during
    assert after.strip().endswith("three")
    assert "two" not in after
