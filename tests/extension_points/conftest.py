"""Fixtures of the extensions' tests."""

from pathlib import Path

import pytest

from tests.extension_points.product_copy import ProductCopy


@pytest.fixture
def product(tmp_path: Path) -> ProductCopy:
    """A copy of the product for one test."""
    return ProductCopy(tmp_path)
