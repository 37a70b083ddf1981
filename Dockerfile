# One image for all services: the command selects the service. Built in two stages so that no compiler or cache ships.
FROM python:3.11-slim AS build
WORKDIR /src
COPY requirements requirements
RUN python -m venv /opt/tutti \
    && /opt/tutti/bin/pip install --no-cache-dir --require-hashes -r requirements/runtime.lock \
    && python -m venv /opt/build \
    && /opt/build/bin/pip install --no-cache-dir --require-hashes -r requirements/build.lock
COPY pyproject.toml README.md LICENSE ./
COPY services services
COPY shared shared
COPY tutti tutti
COPY deploy deploy
RUN /opt/build/bin/python -m hatchling build --target wheel \
    && /opt/tutti/bin/pip install --no-cache-dir --no-deps dist/*.whl

FROM python:3.11-slim
COPY --from=build /opt/tutti /opt/tutti
ENV PATH=/opt/tutti/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
USER 65532:65532
WORKDIR /
