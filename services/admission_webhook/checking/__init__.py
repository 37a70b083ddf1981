"""Judges objects that are stored already, as if each were created now: for `tutti migrate check`.

`judging` asks the webhook's own rules, `__main__` reads objects and writes what is wrong with them.
"""
