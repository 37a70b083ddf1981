"""Tests of ``services/``."""
