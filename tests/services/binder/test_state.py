from services.binder.state import BinderState


def test_a_first_delivery_that_goes_back_looks_like_another_stream() -> None:
    state = BinderState("one")
    assert state.judge(1, 40, delivered=1) == ""
    assert not state.looks_replaced(41, delivered=1)
    assert state.looks_replaced(3, delivered=1)
    assert not state.looks_replaced(3, delivered=2), "a redelivery may be of any age"


def test_epochs_of_another_stream_say_nothing_about_this_one() -> None:
    state = BinderState("one")
    assert state.judge(30, 40, delivered=1) == ""
    assert state.judge(2, 41, delivered=1) == "StaleEpoch"
    state.follow("one")
    assert state.judge(2, 41, delivered=1) == "StaleEpoch", "the same stream is not forgotten"
    state.follow("two")
    assert state.generation == "two"
    assert state.judge(2, 41, delivered=1) == ""
