"""The diagram of a gang's life, drawn from the table of its transitions; run as a module it writes
`docs/pictures/life.svg`.

Boxes and routes of arrows are placed by hand here. What they say comes from the table: an arrow
without a route, and a route without an arrow, are errors.
"""

from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Final, NamedTuple

from services.gang_planner.core.state.gang_states import GangEvent, GangState
from services.gang_planner.core.transitions import TABLE

ROOT: Final = Path(__file__).parents[2]
DIAGRAM: Final = ROOT / "docs" / "pictures" / "life.svg"

_WIDTH: Final = 1140
_HEIGHT: Final = 520
_INK: Final = "#1f2d3d"
_GREY: Final = "#44546a"
_BLUE: Final = ("#e8f0f8", "#0b5394")
_GREEN: Final = ("#e6f3e7", "#2e7d32")
_YELLOW: Final = ("#fff6e5", "#c77700")
_RED: Final = ("#fdecea", "#b3261e")


class _Box(NamedTuple):
    x: int
    y: int
    width: int
    height: int
    colours: tuple[str, str]


class _Route(NamedTuple):
    """An arrow: its path, and where its label begins."""

    path: str
    x: int
    y: int
    anchor: str = "middle"


class _Group(NamedTuple):
    """States that an assessment distinguishes; an arrow may begin at all of them."""

    title: str
    states: tuple[GangState, ...]
    box: _Box


_BEFORE_START: Final = _Group(
    "before the start",
    (GangState.STARTING, GangState.WAITING, GangState.BACKING_OFF),
    _Box(30, 50, 200, 310, ("white", "#9fb3c8")),
)
_AFTER_START: Final = _Group(
    "started",
    (GangState.RUNNING, GangState.DEGRADED),
    _Box(720, 50, 200, 210, ("white", "#9fb3c8")),
)
_GROUPS: Final = (_BEFORE_START, _AFTER_START)
_BOXES: Final[dict[GangState, _Box]] = {
    GangState.STARTING: _Box(50, 80, 160, 70, _BLUE),
    GangState.WAITING: _Box(50, 180, 160, 60, _BLUE),
    GangState.BACKING_OFF: _Box(50, 270, 160, 75, _BLUE),
    GangState.REPAIRING: _Box(430, 80, 120, 50, _YELLOW),
    GangState.RELEASING: _Box(430, 300, 120, 50, _RED),
    GangState.RUNNING: _Box(740, 80, 160, 70, _GREEN),
    GangState.DEGRADED: _Box(740, 180, 160, 60, _YELLOW),
    GangState.COMPLETED: _Box(740, 310, 160, 60, _GREEN),
    GangState.RELEASING_STARTED: _Box(740, 430, 160, 50, _RED),
    GangState.DORMANT: _Box(1030, 180, 90, 60, _BLUE),
}
_ROUTES: Final[dict[tuple[str, GangState], _Route]] = {
    ("before the start", GangState.RUNNING): _Route("M130 50V28H820V78", 475, 22),
    ("before the start", GangState.REPAIRING): _Route("M230 92H428", 330, 86),
    (GangState.REPAIRING, GangState.STARTING): _Route("M430 116H212", 330, 132),
    (GangState.REPAIRING, GangState.RUNNING): _Route("M550 105H738", 640, 99),
    (GangState.REPAIRING, GangState.RELEASING): _Route("M510 130V298", 518, 190, "start"),
    ("before the start", GangState.RELEASING): _Route("M230 320H428", 330, 314),
    (GangState.RELEASING, GangState.STARTING): _Route("M460 300V145H212", 452, 240, "end"),
    (GangState.RELEASING, GangState.BACKING_OFF): _Route("M490 350V395H150V347", 330, 389),
    (GangState.RELEASING_STARTED, GangState.BACKING_OFF): _Route("M740 465H90V347", 330, 459),
    (GangState.RELEASING, GangState.RELEASING_STARTED): _Route("M550 315H665V440H738", 600, 309),
    (GangState.RELEASING_STARTED, GangState.RELEASING): _Route("M738 452H540V352", 600, 446),
    ("started", GangState.RELEASING_STARTED): _Route("M920 240H950V470H902", 958, 400, "start"),
    ("started", GangState.COMPLETED): _Route("M820 260V308", 828, 288, "start"),
    (GangState.COMPLETED, GangState.DORMANT): _Route("M900 355H1060V242", 975, 369),
    (GangState.COMPLETED, GangState.RUNNING): _Route("M740 330H700V125H738", 692, 230, "end"),
    ("started", GangState.DORMANT): _Route("M920 210H1028", 972, 204),
    (GangState.DORMANT, GangState.RUNNING): _Route("M1060 180V105H902", 980, 99),
    (GangState.DORMANT, GangState.STARTING): _Route("M1100 180V8H70V78", 475, 4),
    (GangState.DORMANT, GangState.RELEASING_STARTED): _Route("M1075 240V455H902", 1068, 420, "end"),
    (GangState.WAITING, GangState.STARTING): _Route("M90 180V152", 98, 170, "start"),
    (GangState.BACKING_OFF, GangState.WAITING): _Route("M90 270V242", 98, 260, "start"),
}


def draw() -> str:
    """The diagram as SVG."""
    arrows = dict(_arrows())
    missing, surplus = arrows.keys() - _ROUTES.keys(), _ROUTES.keys() - arrows.keys()
    if missing or surplus:
        raise LookupError(f"arrows without a route: {missing}; routes without an arrow: {surplus}")
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 -12 {_WIDTH} {_HEIGHT}" '
        f'width="{_WIDTH}" height="{_HEIGHT}" font-family="Helvetica, Arial, sans-serif" '
        'font-size="13" role="img" aria-label="The states of a gang, and the events that lead '
        'from one to another.">',
        '<defs><marker id="a" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        f'markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" fill="{_INK}"/></marker></defs>',
        f'<rect y="-12" width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
    ]
    for group in _GROUPS:
        lines.append(_rectangle(group.box, dashed=True))
        lines.append(_text(group.box.x + 8, group.box.y + 18, group.title, "start"))
    lines += [
        f'<path d="{route.path}" fill="none" stroke="{_INK}" stroke-width="1.4" '
        'marker-end="url(#a)"/>'
        for route in _ROUTES.values()
    ]
    for state, box in _BOXES.items():
        lines.append(_rectangle(box))
        entered_by = _entered_by(state)
        middle, top = box.x + box.width // 2, box.y + 26 - 4 * len(entered_by[1:])
        lines.append(_text(middle, top, state, "middle", bold=True))
        lines += [
            _text(middle, top + 17 + 14 * index, text, "middle")
            for index, text in enumerate(entered_by)
        ]
    for key, route in _ROUTES.items():
        lines += [
            _text(route.x, route.y + 14 * index, text, route.anchor)
            for index, text in enumerate(arrows[key])
        ]
    return "\n".join([*lines, "</svg>", ""])


def _arrows() -> Iterator[tuple[tuple[str, GangState], Sequence[str]]]:
    """Every arrow with its labels: from a state, or from a group when the event leads there from
    several states of it.
    """
    found: dict[tuple[str, GangState], list[str]] = {}
    for event, row in TABLE.items():
        for target in GangState:
            sources = [
                state
                for state, one in row.transitions.items()
                if one.next_state is target and state is not target
            ]
            for group in _GROUPS:
                inside = [state for state in sources if state in group.states]
                if target in group.states and _is_finding(event, target):
                    sources = [state for state in sources if state not in inside]
                elif len(inside) > 1:
                    sources = [state for state in sources if state not in inside]
                    found.setdefault((group.title, target), []).append(str(event))
            for state in sources:
                found.setdefault((state, target), []).append(str(event))
    yield from found.items()


def _is_finding(event: GangEvent, target: GangState) -> bool:
    """Whether the event leads to this state from all other states of its group: the box says so,
    and there is no arrow.
    """
    transitions = TABLE[event].transitions
    for group in _GROUPS:
        others = [state for state in group.states if state is not target]
        if target in group.states:
            return all(
                state in transitions and transitions[state].next_state is target for state in others
            )
    return False


def _entered_by(state: GangState) -> list[str]:
    return [str(event) for event in TABLE if _is_finding(event, state)]


def _rectangle(box: _Box, *, dashed: bool = False) -> str:
    fill, stroke = box.colours
    dashes = ' stroke-dasharray="5 4"' if dashed else ""
    return (
        f'<rect x="{box.x}" y="{box.y}" width="{box.width}" height="{box.height}" rx="7" '
        f'fill="{fill}" stroke="{stroke}" stroke-width="1.4"{dashes}/>'
    )


def _text(x: int, y: int, text: str, anchor: str, *, bold: bool = False) -> str:
    look = f'fill="{_INK}" font-weight="600"' if bold else f'fill="{_GREY}" font-size="11.5"'
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}" {look}>{escape(text)}</text>'


def main() -> None:
    """Write the diagram."""
    DIAGRAM.write_text(draw())


if __name__ == "__main__":
    main()
