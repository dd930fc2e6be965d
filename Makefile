# Everything happens in .venv, made from requirements.lock. `make help` lists the targets.
SHELL := /bin/sh
BIN := .venv/bin
export PYTHONWARNINGS ?= default
# Programs that are started a hundred times should not be compiled a hundred times.
unexport PYTHONDONTWRITEBYTECODE
# The first of these that is Python 3.11 to 3.13.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' 2>/dev/null && { echo $$p; break; }; done)
UV_VERSION := 0.13.9

.DEFAULT_GOAL := help
.PHONY: help install demo up down test check chaos bench fmt proto lock clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: .venv/.installed ## make .venv and fetch what the embedded default runs on

.venv/.installed: requirements.lock pyproject.toml client/pyproject.toml
	@test -n "$(PYTHON)" || { echo "Mnemostream needs Python 3.11, 3.12 or 3.13 on the path" >&2; exit 1; }
	@echo "Installing with $(PYTHON) into .venv …"
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@test -x $(BIN)/uv || $(BIN)/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)
	@# The lock is complete: nothing is resolved, so no package brings in what the lock leaves out.
	$(BIN)/uv pip install --python $(BIN)/python --no-deps --require-hashes --compile-bytecode -r requirements.lock
	$(BIN)/uv pip install --python $(BIN)/python --quiet --no-deps --no-build-isolation -e client -e .
	$(BIN)/mnemo fetch
	@touch $@

demo: install ## the main job on a sample conversation, on the embedded default
	@$(BIN)/mnemo demo

up: install ## a long-running embedded system (Ctrl-C or `make down` stops it)
	@$(BIN)/mnemo up

down: install ## stop it
	@$(BIN)/mnemo down

check: install ## lint, types, import contracts
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: check ## everything: the checks, then all tests on a real Kafka and a real Postgres
	@# More tests at once than there are cores: those of the servers mostly wait.
	$(BIN)/pytest -n auto --dist worksteal --durations 20

# For example: make chaos SEED="7 8" TURNS=2000
chaos: install ## faults at random on a real system, and a verifier beside it (docs/chaos.md)
	@$(BIN)/python -m tests.chaos --seeds $(or $(SEED),7) $(if $(TURNS),--turns $(TURNS)) $(if $(OWNERS),--owners $(OWNERS)) \
		$(if $(WORKERS),--workers $(WORKERS)) $(if $(PARTITIONS),--partitions $(PARTITIONS)) $(if $(RATE),--rate $(RATE)) \
		$(if $(KINDS),--kinds $(KINDS))

bench: install ## the table of docs/performance.md
	@$(BIN)/python -m tests.bench

fmt: install ## format, and fix what can be fixed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

proto: install ## generate the code of the RPC again, offline
	$(BIN)/python proto/generate.py

lock: ## resolve the dependencies again
	$(BIN)/uv pip compile --universal --generate-hashes --no-header --python-version 3.11 \
		--no-emit-package mnemostream-client --group dev pyproject.toml client/pyproject.toml -o requirements.lock

clean: ## remove what was built
	rm -rf .venv dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
