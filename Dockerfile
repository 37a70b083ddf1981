# One image for all services: the command selects the service. Built in two stages so that no compiler or cache ships.
# Every package by its hash (requirements/*.lock), every file with the time SOURCE_DATE_EPOCH: the same commit on the same
# base gives the same wheel. PYTHON_IMAGE may name the base with its digest, as a release does.
ARG PYTHON_IMAGE=python:3.11-slim

FROM ${PYTHON_IMAGE} AS build
ARG SOURCE_DATE_EPOCH=315532800
ENV SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH} PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
WORKDIR /src
COPY requirements requirements
RUN python -m venv /opt/tutti \
    && /opt/tutti/bin/pip install --no-compile --require-hashes -r requirements/runtime.lock \
    && python -m venv /opt/build \
    && /opt/build/bin/pip install --require-hashes -r requirements/build.lock
COPY pyproject.toml README.md LICENSE ./
COPY services services
COPY shared shared
COPY tutti tutti
RUN /opt/build/bin/python -m hatchling build --target wheel \
    && /opt/tutti/bin/pip install --no-compile --no-deps dist/*.whl \
    && /opt/tutti/bin/pip uninstall --yes pip setuptools \
    && /opt/tutti/bin/python -m compileall -q --invalidation-mode unchecked-hash /opt/tutti/lib

FROM ${PYTHON_IMAGE}
LABEL org.opencontainers.image.title="tutti" org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /opt/tutti /opt/tutti
# Where volumes are mounted: an empty one gets the owner of what it covers.
RUN install --directory --owner=65532 --group=65532 /etc/tutti/nats /var/lib/tutti/nats
ENV PATH=/opt/tutti/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
USER 65532:65532
WORKDIR /
CMD ["tutti", "--help"]
