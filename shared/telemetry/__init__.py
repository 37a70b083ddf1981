"""Traces over OTLP/HTTP and Prometheus metrics; without an endpoint they cost nothing."""
