"""Traces over OTLP/HTTP, which cost nothing without an endpoint, and Prometheus metrics."""
