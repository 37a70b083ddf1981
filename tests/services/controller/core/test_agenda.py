from services.controller.core.agenda import Agenda


def test_the_most_urgent_of_those_that_are_due_comes_first() -> None:
    agenda: Agenda[str] = Agenda()
    agenda.offer("slow", "v", due_ms=0, urgency=3)
    agenda.offer("soon", "v", due_ms=5, urgency=1)
    agenda.offer("later", "v", due_ms=50, urgency=0)
    assert [agenda.pop(10), agenda.pop(10), agenda.pop(10)] == ["soon", "slow", None]
    assert agenda.wait_ms(10) == 40
    assert agenda.pop(50) == "later"


def test_a_newer_entry_takes_the_place_of_the_older_one() -> None:
    agenda: Agenda[str] = Agenda()
    agenda.offer("gang", "old", due_ms=0, urgency=1)
    agenda.offer("gang", "new", due_ms=20, urgency=1)
    assert agenda.pop(10) is None, "the older one's turn is void"
    assert agenda.wait_ms(10) == 10
    assert agenda.pop(20) == "gang"
    assert agenda.get("gang") == "new"
    assert len(agenda) == 1


def test_a_gang_that_is_out_is_nobody_elses_until_it_is_put_back() -> None:
    agenda: Agenda[str] = Agenda()
    agenda.offer("gang", "old", due_ms=0, urgency=1)
    assert agenda.pop(0) == "gang"
    agenda.offer("gang", "new", due_ms=0, urgency=0)
    assert agenda.pop(0) is None
    assert agenda.get("gang") == "new", "whoever has it out sees that it was overtaken"
    agenda.put("gang", due_ms=0, urgency=0)
    assert agenda.pop(0) == "gang"


def test_what_is_done_is_forgotten() -> None:
    agenda: Agenda[str] = Agenda()
    agenda.offer("gang", "v", due_ms=0, urgency=1)
    agenda.pop(0)
    agenda.drop("gang")
    assert (len(agenda), agenda.get("gang"), agenda.wait_ms(0)) == (0, None, None)


def test_what_was_overtaken_below_more_urgent_things_does_not_pile_up() -> None:
    agenda: Agenda[int] = Agenda()
    agenda.offer("urgent", 0, due_ms=0, urgency=0)
    for number in range(10_000):
        agenda.offer("gang", number, due_ms=0, urgency=4)
        assert agenda.pop(0) == "urgent", "there is always something before it"
        agenda.put("urgent", due_ms=0, urgency=0)
    assert agenda.scheduled < 1_000
    agenda.pop(0)
    assert agenda.pop(0) == "gang"
    assert agenda.get("gang") == 9_999
