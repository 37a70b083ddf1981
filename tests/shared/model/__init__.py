"""Tests of shared.model."""
