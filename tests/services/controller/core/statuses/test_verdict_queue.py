from services.controller.core.statuses.verdict_queue import VerdictQueue


def test_the_most_urgent_of_those_that_are_due_comes_first() -> None:
    queue: VerdictQueue[str] = VerdictQueue()
    queue.offer("slow", "v", due_ms=0, urgency=3)
    queue.offer("soon", "v", due_ms=5, urgency=1)
    queue.offer("later", "v", due_ms=50, urgency=0)
    assert [queue.pop(10), queue.pop(10), queue.pop(10)] == ["soon", "slow", None]
    assert queue.wait_ms(10) == 40
    assert queue.pop(50) == "later"


def test_a_newer_entry_takes_the_place_of_the_older_one() -> None:
    queue: VerdictQueue[str] = VerdictQueue()
    queue.offer("gang", "old", due_ms=0, urgency=1)
    queue.offer("gang", "new", due_ms=20, urgency=1)
    assert queue.pop(10) is None, "the older one's turn is void"
    assert queue.wait_ms(10) == 10
    assert queue.pop(20) == "gang"
    assert queue.get("gang") == "new"
    assert len(queue) == 1


def test_a_gang_that_was_taken_out_is_given_to_no_other_worker_until_it_is_put_back() -> None:
    queue: VerdictQueue[str] = VerdictQueue()
    queue.offer("gang", "old", due_ms=0, urgency=1)
    assert queue.pop(0) == "gang"
    queue.offer("gang", "new", due_ms=0, urgency=0)
    assert queue.pop(0) is None
    assert queue.get("gang") == "new", "the worker that has it sees that it was overtaken"
    queue.put("gang", due_ms=0, urgency=0)
    assert queue.pop(0) == "gang"


def test_what_is_done_is_forgotten() -> None:
    queue: VerdictQueue[str] = VerdictQueue()
    queue.offer("gang", "v", due_ms=0, urgency=1)
    queue.pop(0)
    queue.drop("gang")
    assert (len(queue), queue.get("gang"), queue.wait_ms(0)) == (0, None, None)


def test_what_was_overtaken_below_more_urgent_things_does_not_pile_up() -> None:
    queue: VerdictQueue[int] = VerdictQueue()
    queue.offer("urgent", 0, due_ms=0, urgency=0)
    for number in range(10_000):
        queue.offer("gang", number, due_ms=0, urgency=4)
        assert queue.pop(0) == "urgent", "there is always something before it"
        queue.put("urgent", due_ms=0, urgency=0)
    assert queue.scheduled < 1_000
    queue.pop(0)
    assert queue.pop(0) == "gang"
    assert queue.get("gang") == 9_999
