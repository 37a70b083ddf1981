"""Refused gangs of one namespace are tried again without keeping those of others from it."""

from services.controller.podgroup_controller import (
    REFUSED_MAX,
    REFUSED_OF_NAMESPACE_MAX,
    REFUSED_RETRY_S,
    RefusedGangs,
)


def test_a_namespace_with_many_refused_gangs_leaves_places_to_others() -> None:
    refused = RefusedGangs()
    tried = [refused.is_tried_again("evil", f"g-{at}", 0.0) for at in range(1_000)]
    assert sum(tried) == REFUSED_OF_NAMESPACE_MAX
    assert refused.is_tried_again("prod", "g", 0.0)
    assert refused.is_tried_again("evil", "g-0", REFUSED_RETRY_S)


def test_the_number_of_gangs_is_bounded_and_those_that_are_refused_no_more_leave() -> None:
    refused = RefusedGangs()
    tried = [refused.is_tried_again(f"n-{at}", "g", 0.0) for at in range(1_000)]
    assert sum(tried) == REFUSED_MAX
    assert refused.is_tried_again("prod", "g", 2 * REFUSED_RETRY_S)
