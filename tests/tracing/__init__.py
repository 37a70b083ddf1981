"""What operators see of a running suite: one trace per gang, log lines in it, and metrics."""
