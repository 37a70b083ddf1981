import click

from tutti.api.objects import Object, name_of, text
from tutti.api.output import Column, Layout, Table

LAYOUT = Layout(
    columns=(
        Column(title="Name", value=name_of),
        Column(title="Phase", width=8, value=lambda one: text(one, "phase"), coloured=True),
        Column(title="Node", wide=True, value=lambda one: text(one, "node")),
    )
)


def one(name: str, phase: str) -> Object:
    return {"metadata": {"name": name}, "phase": phase, "node": "n1"}


def plain(lines: list[str]) -> list[str]:
    return [click.unstyle(line) for line in lines]


def test_a_column_has_its_fixed_width_or_that_of_its_longest_cell_and_the_gap() -> None:
    assert plain(Table(LAYOUT).lines([one("a", "Open"), one("longer-name", "")])) == [
        "Name          Phase   ",
        "a             Open    ",
        "longer-name           ",
    ]


def test_wide_columns_are_shown_when_they_are_asked_for() -> None:
    assert plain(Table(LAYOUT, wide=True).lines([one("a", "Open")])) == [
        "Name   Phase   Node   ",
        "a      Open    n1     ",
    ]


def test_a_cell_that_would_touch_its_neighbour_widens_its_column() -> None:
    assert plain(Table(LAYOUT, wide=True).lines([one("a", "Terminating")])) == [
        "Name   Phase       Node   ",
        "a      Terminating n1     ",
    ]


def test_rows_that_come_later_have_no_second_head_and_are_no_narrower() -> None:
    table = Table(LAYOUT)
    table.lines([one("longer-name", "Open")])
    assert plain(table.lines([one("b", "Closed")])) == ["b             Closed  "]


def test_phases_have_colours_and_unknown_words_have_none() -> None:
    _, known, unknown = Table(LAYOUT).lines([one("a", "Failed"), one("a", "Dancing")])
    assert click.style("Failed  ", fg="red") in known
    assert click.unstyle(unknown) == unknown
