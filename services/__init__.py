"""The services: one asyncio process each, started by ``python -m services.NAME``.

They talk over NATS only; none imports another. Every package has the same file names, so that
knowing one is knowing all: ``__main__`` (bootstrap), ``service`` (asyncio shell), ``core`` (pure),
``state``, ``config``, ``errors``.
"""
