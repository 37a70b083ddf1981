from services.binder.state import EPOCHS_MAX, BinderState, EpochsSeen


def test_a_decision_of_the_epoch_in_force_is_carried_out() -> None:
    epochs = EpochsSeen()
    assert epochs.check(5, 6) is None
    assert epochs.check(5, 7) is None


def test_an_older_planners_decision_is_still_carried_out_when_it_was_written_in_its_own_epoch() -> (
    None
):
    epochs = EpochsSeen()
    assert epochs.check(20, 21) is None
    assert epochs.check(5, 19) is None, "redelivered late, but decided before epoch 20 was opened"


def test_a_decision_written_after_a_newer_epoch_was_opened_is_stale() -> None:
    epochs = EpochsSeen()
    assert epochs.check(20, 21) is None
    assert epochs.check(5, 22) == "StaleEpoch"


def test_a_decision_whose_epoch_was_not_open_yet_is_refused() -> None:
    assert EpochsSeen().check(9, 9) == "StaleEpoch"
    assert EpochsSeen().check(9, 3) == "StaleEpoch"


def test_a_refused_decision_teaches_nothing() -> None:
    epochs = EpochsSeen()
    assert epochs.check(30, 10) == "StaleEpoch"
    assert epochs.check(5, 40) is None


def test_the_newest_epochs_are_remembered_and_no_more() -> None:
    epochs = EpochsSeen()
    for epoch in range(10, 10 + 10 * (EPOCHS_MAX + 1), 10):
        assert epochs.check(epoch, epoch + 1) is None
    assert epochs.check(5, 12) is None, "epoch 10 is forgotten"
    assert epochs.check(6, 22) == "StaleEpoch", "epoch 20 is not"


def test_a_first_delivery_that_goes_back_looks_like_another_stream() -> None:
    state = BinderState("one")
    assert state.check_epoch(1, 40, delivered=1) is None
    assert not state.looks_replaced(41, delivered=1)
    assert state.looks_replaced(3, delivered=1)
    assert not state.looks_replaced(3, delivered=2), "a redelivery may be of any age"


def test_epochs_of_another_stream_say_nothing_about_this_one() -> None:
    state = BinderState("one")
    assert state.check_epoch(30, 40, delivered=1) is None
    assert state.check_epoch(2, 41, delivered=1) == "StaleEpoch"
    state.follow("one")
    assert state.check_epoch(2, 41, delivered=1) == "StaleEpoch", "the same stream is not forgotten"
    state.follow("two")
    assert state.generation == "two"
    assert state.check_epoch(2, 41, delivered=1) is None
