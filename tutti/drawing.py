"""Bars and lines of block characters, for what is shown in a terminal. Pure."""

from collections.abc import Iterable
from typing import Final

from rich.text import Text

from shared.kube.quantities import format_quantity

_EIGHTHS: Final = " ▏▎▍▌▋▊▉█"
_LEVELS: Final = "▁▂▃▄▅▆▇█"
_BINARY: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi")


def bar(value: float, most: float, width: int, style: str) -> Text:
    """`value` of `most` as a bar of so many characters, to an eighth of one; the rest is shaded.

    What is not nothing shows at least as an eighth; what is more than `most` fills the bar.
    """
    part = min(1.0, max(0.0, value / most)) if most > 0 else 0.0
    eighths = round(part * width * 8)
    if value > 0 and most > 0:
        eighths = max(1, eighths)
    full, rest = divmod(eighths, 8)
    drawn = "█" * full + (_EIGHTHS[rest] if rest else "")
    return Text.assemble((drawn, style), ("░" * (width - len(drawn)), "bright_black"))


def sparkline(values: Iterable[float]) -> str:
    """A character per value, as high as the value is among all values; 0 is the lowest."""
    heights = list(values)
    most = max(heights, default=0.0)
    if most <= 0:
        return _LEVELS[0] * len(heights)
    top = len(_LEVELS) - 1
    return "".join(
        _LEVELS[max(1, round(height / most * top)) if height > 0 else 0] for height in heights
    )


def shortened(resource: str, amount: int) -> str:
    """An amount in the model's units in at most five characters or so: `1500m`, `24`, `3.5Gi`."""
    if resource != "memory" and "storage" not in resource:
        return format_quantity(resource, amount)
    scaled, unit = float(amount), 0
    while scaled >= 1024 and unit < len(_BINARY) - 1:
        scaled /= 1024
        unit += 1
    return f"{scaled:.3g}{_BINARY[unit]}" if scaled < 1000 else f"{scaled:.0f}{_BINARY[unit]}"


def counted(number: int) -> str:
    """A count in at most five characters: `812`, `2.1k`, `31k`, `1.2M`."""
    for unit, size in (("G", 1_000_000_000), ("M", 1_000_000), ("k", 1_000)):
        if number >= size:
            scaled = number / size
            return f"{scaled:.1f}{unit}" if scaled < 10 else f"{scaled:.0f}{unit}"
    return str(number)
