"""A topology in words. Pure."""

from shared.model.objects import NetworkTopology


def in_words(topology: NetworkTopology) -> str:
    """Where pods must be, or should be if possible."""
    if topology.label_key:
        domain = f"one value of the node label {topology.label_key}"
    elif topology.highest_tier_name:
        domain = f"one HyperNode of at most tier {topology.highest_tier_name}"
    elif topology.highest_tier:
        domain = f"one HyperNode of at most tier {topology.highest_tier}"
    else:
        domain = "one HyperNode"
    return f"inside {domain}" + ("" if topology.mode == "hard" else ", if possible")
