"""Tests of the stand-in for the tf-operator."""
