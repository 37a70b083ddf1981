"""Tests of the API service."""
