# One command each; ARGS="..." is handed on. The first use makes .venv/<major.minor> (scripts/make_venv.py).
# PYTHON=/path/to/python chooses the interpreter; otherwise scripts/find-python.sh looks for one.

SHELL := /bin/sh
PYTHON ?=
ARGS ?=
# Test processes: a number, or "auto" for one a core.
JOBS ?= auto
# Seconds a test: a hang is a failure with a traceback.
TIMEOUT ?= 300

export PYTHON
unexport PYTHONPATH PYTHONHOME VIRTUAL_ENV

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help demo test check format record docs bench bench-quick bench-report clean

help:
	@echo "make demo    a chain, an agent and a RAG answer, on a local stand-in for the service (no key needed)"
	@echo "make test    the whole test suite"
	@echo "make check   linter, formatter and type checker"
	@echo "make format  mend what the linter and the formatter can"
	@echo "make record  record the cassettes again"
	@echo "make docs    run every example of the documentation"
	@echo "make bench   the benchmarks; bench-quick is a short form, bench-report writes docs/performance.md"
	@echo "make clean   remove the virtual environments and caches"

demo:
	@py=$$(GOAL=$@ scripts/make-venv.sh demo) && "$$py" -m examples $(ARGS)

test:
	@py=$$(GOAL=$@ scripts/make-venv.sh dev) && "$$py" -m pytest -n $(JOBS) --timeout $(TIMEOUT) $(ARGS)

check:
	@py=$$(GOAL=$@ scripts/make-venv.sh dev) && set -x && \
	"$$py" -m ruff check . && "$$py" -m ruff format --check . && "$$py" -m mypy

format:
	@py=$$(GOAL=$@ scripts/make-venv.sh dev) && "$$py" -m ruff check --fix . && "$$py" -m ruff format .

record:
	@py=$$(GOAL=$@ scripts/make-venv.sh dev) && "$$py" scripts/record.py $(ARGS)

docs:
	@py=$$(GOAL=$@ scripts/make-venv.sh dev) && "$$py" -m pytest tests/docs $(ARGS)

bench:
	@py=$$(GOAL=$@ scripts/make-venv.sh bench) && "$$py" -m benchmarks.run $(ARGS)

bench-quick:
	@py=$$(GOAL=$@ scripts/make-venv.sh bench) && "$$py" -m benchmarks.run --quick $(ARGS)

bench-report:
	@py=$$(GOAL=$@ scripts/make-venv.sh bench) && "$$py" -m benchmarks.report $(ARGS)

clean:
	rm -rf .venv dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
