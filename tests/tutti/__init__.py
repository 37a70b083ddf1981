"""Tests of ``tutti/``."""
