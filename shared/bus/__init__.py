"""The only package that imports nats: streams, publishers, pull loops and the fenced append."""
