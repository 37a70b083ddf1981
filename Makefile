# Everything one types while working on Tutti. `make` alone lists the targets.
# PYTHON chooses the interpreter that makes .venv (3.11 or newer); ARGS passes flags on to the command behind a target.
# WORKERS is how many processes run the tests, each with a control plane of its own (0: in one, as a debugger wants it).
# What is pure only computes: unless WORKERS is given, as many processes as there are processors run it.

PYTHON ?= python3
ARGS ?=
WORKERS ?= 3
UNIT := $(wildcard tests/services/*/core) $(addprefix tests/shared/,model contracts dialects job_plugins kinds) \
	tests/scenarios tests/test_tidy.py tests/test_import_cycles.py
BIN := .venv/bin
STAMP := .venv/.stamp
DOCS_STAMP := build/docs-env/.stamp
RELEASE_STAMP := build/release-env/.stamp
COMPILE := $(BIN)/pip-compile --quiet --generate-hashes --allow-unsafe --strip-extras --no-header \
	--no-emit-index-url --no-emit-trusted-host --no-emit-find-links --no-emit-options

.DEFAULT_GOAL := help
.PHONY: help setup fmt lint unit test sim manifests chart console demo chaos soak fuzz audit certify bench bench-planner plots docs version release lock lock-image clean

help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{ printf "  %-13s %s\n", $$1, $$2 }'

setup: $(STAMP) ## Make .venv with everything that the lock names, and .venv/bin/tutti

# Remade when the lock or the project's own metadata changes; otherwise nothing runs.
# pip comes from the lock first: the one that an interpreter ships may be too old to read it well.
$(STAMP): requirements/dev.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Tutti needs Python 3.11 or newer: make setup PYTHON=python3.12" >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

fmt: $(STAMP) ## Format, and mend what ruff can mend
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format --quiet .

lint: $(STAMP) ## Linters, both type checkers, the import contracts, spelling
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/typos
	$(BIN)/mypy
	$(BIN)/pyright

unit: $(STAMP) ## Tests of everything pure, and the repository's rules, to run after every change: a minute with four processors, four with one (WORKERS=1)
	$(BIN)/pytest -m "not certify and not slow and not integration" --dist loadfile \
		--numprocesses $(if $(filter file,$(origin WORKERS)),logical,$(WORKERS)) $(UNIT) $(ARGS)

test: $(STAMP) ## All tests but those of `make certify`: 20 minutes at most, once all is built (ARGS="-k name" chooses)
	$(BIN)/pytest -m "not certify" --numprocesses $(WORKERS) --dist loadfile $(ARGS)

sim: $(STAMP) ## Simulate: SEED=7 tells one run (ARGS=--shrink makes it small), MINUTES=10 runs many (ARGS="--totals FILE")
	$(BIN)/python -m tests.simulation $(if $(SEED),--seed $(SEED),--minutes $(or $(MINUTES),1)) $(ARGS)

manifests: $(STAMP) ## Write deploy/crds and the chart's rights anew from the code
	$(BIN)/python -m tutti.manifests $(ARGS)

chart: $(STAMP) ## Render deploy/tutti.yaml with Helm, which is built from its Go module first
	$(BIN)/python -m tests.deploy.rendered

console: console/node_modules/.stamp ## Check, test and bundle the console (needs Node 20); commit shared/console/assets
	cd console && npm run --silent check && npm run --silent test && npm run --silent build

console/node_modules/.stamp: console/package-lock.json
	cd console && npm ci --ignore-scripts --silent
	@touch $@

demo: $(STAMP) ## The seeds' experiment on an embedded cluster (ARGS="--fast" for a short one)
	$(BIN)/tutti demo $(ARGS)

chaos: $(STAMP) ## Kill, freeze and restart everything on a real cluster (ARGS="--minutes 3 --seed 7")
	$(BIN)/python -m tests.chaos $(ARGS)

soak: $(STAMP) ## Steady load on a real API server, and what grows (MINUTES=60): build/soak
	$(BIN)/python -m bench.soak --minutes $(or $(MINUTES),6) $(ARGS)

fuzz: $(STAMP) ## Feed everything that parses input with what nobody should send (MINUTES=10)
	$(BIN)/python -m tests.fuzz --minutes $(or $(MINUTES),1) $(ARGS)

# Apart from .venv: it asks about the lock and has dependencies of its own. LOCK chooses another one.
audit: $(STAMP) ## Ask the Python advisory database about every locked version
	@test -x build/audit/bin/pip-audit || { $(PYTHON) -m venv build/audit && build/audit/bin/pip install --quiet pip-audit; }
	build/audit/bin/pip-audit --strict --disable-pip --require-hashes -r $(or $(LOCK),requirements/runtime.lock) $(ARGS)

certify: $(STAMP) ## What takes longer, hours of it (ARGS="--minutes 6"): docs/certificates/
	$(BIN)/python -m bench.certify $(ARGS)

bench: $(STAMP) ## Drains and live gangs on a real API server (ARGS passes flags, such as --runs 1)
	$(BIN)/tutti bench $(ARGS)

bench-planner: $(STAMP) ## How fast the planner decides, in process (ARGS="placement" chooses cases)
	$(BIN)/python -m bench.planner $(ARGS)

plots: $(STAMP) ## Draw the newest certificate's figures into docs/plots (ARGS="--session FILE"; `make bench plots`)
	$(BIN)/python -m bench.plots $(ARGS)

docs: $(DOCS_STAMP) ## The documentation as a site, in build/site; a broken link is an error
	build/docs-env/bin/python -m sphinx --fresh-env --fail-on-warning --keep-going --quiet -b html docs build/site $(ARGS)
	@echo "build/site/index.html"

# An environment of its own: who only runs and tests Tutti need not wait for it.
$(DOCS_STAMP): requirements/docs.lock
	$(PYTHON) -m venv build/docs-env
	build/docs-env/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/docs.lock
	@touch $@

version: $(STAMP) ## Make VERSION=X.Y.Z the version of all files, and `Unreleased` its section of the changelog
	$(BIN)/python -m release version "$(VERSION)" $(ARGS)
	$(MAKE) chart ARGS=

# OUT, IMAGE (where the image will be pushed, without a tag), URL (where files will be): docs/releasing.md.
release: $(RELEASE_STAMP) ## Every artefact of the commit for VERSION=X.Y.Z, in dist/X.Y.Z (docs/releasing.md)
	build/release-env/bin/python -m release build --version "$(VERSION)" --output "$(or $(OUT),dist/$(VERSION))" \
		--cache build/release-cache $(if $(IMAGE),--image "$(IMAGE)") $(if $(URL),--url "$(URL)") $(ARGS)

$(RELEASE_STAMP): requirements/release.lock
	$(PYTHON) -m venv build/release-env
	build/release-env/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/release.lock
	@touch $@

lock: $(STAMP) ## Choose versions anew and write requirements/*.lock
	$(COMPILE) --upgrade --output-file requirements/runtime.lock pyproject.toml
	$(COMPILE) --upgrade --all-build-deps --only-build-deps --output-file requirements/build.lock pyproject.toml
	$(COMPILE) --upgrade --extra mcp --constraint requirements/runtime.lock --output-file requirements/mcp.lock pyproject.toml
	$(COMPILE) --upgrade --output-file requirements/docs.lock requirements/docs.in
	$(COMPILE) --upgrade --output-file requirements/release.lock requirements/release.in
	$(COMPILE) --upgrade --output-file requirements/browser.lock requirements/browser.in
	$(COMPILE) --upgrade --output-file requirements/notebook.lock requirements/notebook.in
	$(COMPILE) --upgrade --output-file requirements/clients.lock requirements/clients.in
	$(COMPILE) --upgrade --extra embedded --extra test --extra dev --output-file requirements/dev.lock pyproject.toml

lock-image: $(STAMP) ## Choose the image's Debian packages again and write requirements/image.lock
	$(BIN)/python -m release lock-image

clean: ## Remove .venv, caches and what builds left behind
	rm -rf .venv build dist console/node_modules console/build .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find services shared tutti release tests bench -name __pycache__ -type d -prune -exec rm -rf {} +
