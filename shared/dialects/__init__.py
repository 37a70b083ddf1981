"""One file of pure functions per gang dialect: which kinds it reads, how it reads, reports and validates them.

Watcher, controller and webhook discover the files; adding a dialect is adding a file.
"""
