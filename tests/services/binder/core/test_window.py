from services.binder.core.window import Window


def test_lanes_are_all_open_until_something_is_too_much() -> None:
    window = Window(32)
    window.answered()
    assert window.width == 32


def test_what_was_under_way_together_halves_the_window_once() -> None:
    window = Window(32)
    for answered_s in (10.0, 10.1, 10.2):
        window.overrun(9.9, answered_s)
    assert window.width == 16
    window.overrun(10.3, 11.0)
    assert window.width == 8, "what was sent after that was too much still"


def test_one_lane_stays_open_whatever_comes() -> None:
    window = Window(32)
    for second in range(50):
        window.overrun(second, second + 0.5)
    assert window.width == 1


def test_answers_open_lanes_again_up_to_all() -> None:
    window = Window(8)
    for second in range(3):
        window.overrun(second, second + 0.5)
    assert window.width == 1
    widths = []
    for _ in range(40):
        window.answered()
        widths.append(window.width)
    assert widths == sorted(widths), "one after the other"
    assert widths[-1] == 8
    assert widths.index(8) > 8, "not at once"
