# Every target sets up what it needs in .venv; `make demo` and `make test` run on a bare machine.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# A folder of local wheels known to pip is made known to uv as well.
export UV_FIND_LINKS ?= $(PIP_FIND_LINKS)
# Compiled once for all processes: torch alone takes each of them five seconds otherwise.
unexport PYTHONDONTWRITEBYTECODE
INSTALL := $(BIN)/uv pip install -q --python $(BIN)/python -c constraints.txt

.PHONY: help demo test check gpu-check bench format clean
help:
	@echo "make demo    score foreign files, run four benchmarks on simulated data; a site shows all"
	@echo "make test    the CPU test suite"
	@echo "make check   lint, format, types, import contracts"
	@echo "make gpu-check  tests and checks that need a GPU, in the current environment"
	@echo "make bench   speed and memory against peers, to bench/RESULTS.md"

$(BIN)/uv:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q uv

$(VENV)/.user: $(BIN)/uv pyproject.toml constraints.txt
	$(INSTALL) -e ".[tables,report,train]"
	@touch $@

$(VENV)/.dev: $(BIN)/uv pyproject.toml constraints.txt
	$(INSTALL) -e ".[dev]"
	@touch $@ $(VENV)/.user

demo: $(VENV)/.user
	$(BIN)/python examples/demo.py demo

# Pages are tested in Debian's Chromium. Where it cannot be had, their tests are skipped.
$(VENV)/.browser: $(VENV)/.dev
	@command -v chromium >/dev/null || apt-get install -y -qq chromium >/dev/null 2>&1 \
		|| echo "chromium is not installed: tests in a browser are skipped"
	@$(INSTALL) -e ".[browser]" \
		|| echo "playwright cannot be installed: tests in a browser are skipped"
	@touch $@

test: $(VENV)/.browser
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal --durations=20 -m "not slow and not gpu"

check: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

gpu-check:
	PYTHON=$(PYTHON) bash bench/gpu_all.sh

bench: $(VENV)/.dev
	$(BIN)/python bench/run.py

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) demo
