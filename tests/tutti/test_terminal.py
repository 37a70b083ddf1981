"""Bars, lines and amounts of a terminal's frames, and screens that are redrawn."""

import io
from collections.abc import AsyncIterator

import pytest
from rich.console import Console, RenderableType

from tutti.terminal import (
    bar,
    counted,
    cut,
    drawing_width,
    plain_table,
    redraw,
    report_console,
    shortened,
    sparkline,
)


@pytest.mark.parametrize(
    ("value", "most", "drawn"),
    [
        pytest.param(0, 4, "░░░░", id="nothing"),
        pytest.param(2, 4, "██░░", id="half"),
        pytest.param(1.5, 4, "█▌░░", id="to an eighth"),
        pytest.param(0.0001, 4, "▏░░░", id="what is not nothing shows"),
        pytest.param(9, 4, "████", id="more than all"),
        pytest.param(3, 0, "░░░░", id="of nothing"),
    ],
)
def test_a_bar_is_as_long_as_the_part(value: float, most: float, drawn: str) -> None:
    assert bar(value, most, 4, "green").plain == drawn


def test_a_line_shows_each_value_among_the_others_and_what_is_not_nothing() -> None:
    assert sparkline([0, 0]) == "▁▁"
    assert sparkline([0, 50, 100, 0.1]) == "▁▅█▂"


@pytest.mark.parametrize(
    ("resource", "amount", "text"),
    [
        ("cpu", 1500, "1500m"),
        ("cpu", 24_000, "24"),
        ("memory", 3 * 2**29, "1.5Gi"),
        ("memory", 512, "512"),
        ("nvidia.com/gpu", 8, "8"),
    ],
)
def test_amounts_are_short(resource: str, amount: int, text: str) -> None:
    assert shortened(resource, amount) == text


def test_counts_are_short() -> None:
    assert [counted(one) for one in (0, 999, 2_113, 31_400, 1_234_567)] == [
        "0",
        "999",
        "2.1k",
        "31k",
        "1.2M",
    ]


async def three() -> AsyncIterator[RenderableType]:
    for frame in ("one", "two", "three"):
        yield frame


async def test_every_frame_is_printed_where_there_is_no_terminal() -> None:
    text = io.StringIO()
    await redraw(three(), Console(file=text))
    assert text.getvalue() == "one\ntwo\nthree\n"


async def test_the_terminal_is_restored_with_the_last_frame_on_it() -> None:
    text = io.StringIO()
    await redraw(three(), Console(file=text, force_terminal=True, width=20, height=5))
    left_alternate_screen = "\x1b[?1049l"
    during, _, after = text.getvalue().partition(left_alternate_screen)
    assert "two" in during
    assert after.strip().endswith("three")
    assert "two" not in after


def test_names_that_differ_at_their_ends_differ_when_they_are_cut() -> None:
    names = [f"team/training-run-with-a-long-name-{at:04}" for at in range(3)]
    shown = [cut(name, 28) for name in names]
    assert len(set(shown)) == 3
    assert {len(one) for one in shown} == {28}
    assert cut("team/short", 28) == "team/short"
    assert cut("abc", 2) == "a…"


def test_what_goes_to_another_program_is_not_broken_into_lines(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "70")
    table = plain_table("NAME", "WHY")
    table.add_row("train", "0/4 nodes are available " * 20)
    report_console().print(table)
    report_console().print("waits " * 100)
    assert len(capsys.readouterr().out.splitlines()) == 3
    assert drawing_width(report_console()) == 200
