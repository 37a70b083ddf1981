"""A program that checks a scheduler's configuration, for `tutti migrate`."""
