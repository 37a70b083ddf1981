"""The configurable actions of a cycle. Each module has one function `run`."""
