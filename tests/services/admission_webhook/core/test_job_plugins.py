"""What admission says of plugins is what the controller has of them."""

from services.admission_webhook.core.job_plugins import BRINGS
from services.controller.core.jobs.plugins.discovery import plugin_builders
from shared.kinds.job_shape import DEPENDENCIES


def test_admission_lets_in_just_the_plugins_that_the_controller_builds() -> None:
    assert sorted(BRINGS) == sorted(plugin_builders())


def test_admission_and_the_controller_agree_on_what_a_plugin_brings_along() -> None:
    brought = {name: set(others) for name, others in BRINGS.items() if others}
    assert brought == {name: set(others) for name, others in DEPENDENCIES.items()}
