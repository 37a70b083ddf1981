"""Shows one frame after the other in one place, for what is watched in a terminal."""

from collections.abc import AsyncIterator

from rich.console import Console, RenderableType
from rich.live import Live


async def redraw(pictures: AsyncIterator[RenderableType], console: Console) -> None:
    """Show each frame when it comes, until there are no more.

    The terminal is restored as it was, with the last frame left on it, also when this is
    interrupted. What is no terminal gets every frame, one below the other.
    """
    if not console.is_terminal:
        async for picture in pictures:
            console.print(picture)
        return
    last: RenderableType = ""
    try:
        with Live(console=console, screen=True, auto_refresh=False) as live:
            async for picture in pictures:
                last = picture
                live.update(picture, refresh=True)
    finally:
        console.print(last)
