"""The diagram of a gang's life is that of the table of its transitions."""

from tests.documents.life import DIAGRAM, draw


def test_the_diagram_of_a_gangs_life_is_current() -> None:
    assert DIAGRAM.read_text() == draw(), "write it with: python -m tests.documents.life"
