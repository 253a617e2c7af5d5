# One word per chore. `make quickstart` and `make test` are all that a newcomer needs; both make .venv first.

PYTHON ?= python3
BIN := .venv/bin
SEED ?= 1
QUICKSTART ?= runs/quickstart
CASCADE ?= runs/cascade

# Small models on few cores: one OpenMP thread is faster than many, and makes runs repeat byte for byte.
export OMP_NUM_THREADS ?= 1
export TOKENIZERS_PARALLELISM ?= false

.PHONY: help install quickstart cascade orders test test-fast drills engine engine-stop bench-math bench-scoring bench-if bench-service bench-openrlhf bench-ray bench-trl bench-overlap bench-sandbox bench-rm openrlhf-env test-openrlhf docs lint format typecheck clean

help:  ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

install: .venv/installed  ## make .venv with everything in it

.venv/installed: pyproject.toml requirements.txt constraints.txt $(wildcard plugins/*/pyproject.toml)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "cascade-rl needs Python 3.11 or newer, and $(PYTHON) is $$($(PYTHON) --version 2>&1); set PYTHON=python3.x" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
	  { echo "$(PYTHON) has no venv module; on Debian: apt-get install python3-venv" >&2; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt -c constraints.txt
	@touch $@

quickstart: .venv/installed  ## a whole cascade on this machine: SFT, then RL on instruction following, then on math
	$(BIN)/cascade run examples/quickstart.yaml --folder $(QUICKSTART) --set seed=$(SEED)

cascade: .venv/installed  ## the whole cascade in small: SFT, a reward model, RLHF, IF, math, and programs in Docker: make engine, once, before
	@$(BIN)/cascade sandbox doctor >/dev/null 2>&1 || { echo "make cascade runs programs in Docker, which is not ready here:" \
	  "make engine gets it ready, cascade sandbox doctor says what is missing" >&2; exit 1; }
	$(BIN)/cascade run examples/cascade.yaml --folder $(CASCADE) --set seed=$(SEED)

orders: .venv/installed  ## an experiment: RLHF before instruction following and after it, three seeds each
	$(BIN)/python tools/orders.py runs/orders

test: .venv/installed lint typecheck  ## every test, slow ones too
	$(BIN)/python -m pytest -q -n 2 --dist loadfile

test-fast: .venv/installed  ## the tests that take seconds
	$(BIN)/python -m pytest -q -m "not slow and not drill"

drills: .venv/installed  ## slow faults and public data: a cascade killed ten times, every label and loader there is
	$(BIN)/python -m pytest -q -n 2 --dist loadfile drills
	$(BIN)/python -m pytest -q -n 2 --dist loadfile -m drill

bench-scoring: .venv/installed  ## judging beside bare calls, with inputs that hang, a million rows
	$(BIN)/python benchmarks/scoring.py

bench-ray: .venv/installed  ## judging on Ray actors beside processes of this machine
	$(BIN)/python benchmarks/ray_scoring.py

# What the domain if is measured against: no part of the project, and in a folder of its own.
PUBLIC_CHECKERS := .venv/public-checkers

$(PUBLIC_CHECKERS)/installed: .venv/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --target $(PUBLIC_CHECKERS) \
	  if-verifiable==0.1.2 lm_eval==0.4.13 langdetect==1.0.9 nltk==3.10.4 immutabledict==4.3.1 six==1.17.0 \
	  emoji==2.16.0 syllapy==0.8.0 ujson==6.1.0
	@touch $@

bench-if: $(PUBLIC_CHECKERS)/installed  ## instruction checks beside the public checkers
	PYTHONPATH=$(PUBLIC_CHECKERS) $(BIN)/python benchmarks/if_verifier.py

bench-trl: .venv/installed  ## a training step beside TRL's own trainer
	$(BIN)/python benchmarks/trl_overhead.py

bench-overlap: .venv/installed  ## a slow verifier beside generation, and after it
	$(BIN)/python benchmarks/overlap.py

bench-service: .venv/installed  ## the reward service beside one that judges in its handler
	$(BIN)/python benchmarks/service.py

bench-rm: .venv/installed  ## a reward model served beside a plain loop and beside padding in arrival order
	$(BIN)/python benchmarks/reward_model.py

bench-openrlhf: openrlhf-env  ## a step of the real OpenRLHF under cascade run beside one of OpenRLHF alone
	$(BIN)/python benchmarks/openrlhf_overhead.py

bench-sandbox: .venv/installed  ## programs in the sandbox beside bare fork and exec, docker run and docker exec
	$(BIN)/python benchmarks/sandbox.py

bench-math: .venv/installed  ## the mathematics verifier beside math-verify: hard cases, speed, math-verify's own test pairs
	$(BIN)/python benchmarks/math_verifier.py
	$(BIN)/python benchmarks/math_agreement.py

engine: .venv/installed  ## install and start a Docker engine (Debian, as root), and make the sandbox's images
	@tools/engine start

engine-stop:  ## stop the engine that make engine started
	@tools/engine stop

openrlhf-env: .venv/installed  ## an environment in .openrlhf where OpenRLHF runs on a CPU: minutes, 3 GB
	$(BIN)/python -m cascade_core.rehearsal .openrlhf

test-openrlhf: openrlhf-env  ## a real cascade through OpenRLHF, Ray, vLLM and DeepSpeed on the CPU, killed once and resumed
	$(BIN)/python -m pytest -q -o timeout=1800 tests_openrlhf

docs: .venv/installed  ## the documentation as a site, in site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet
	@echo site/index.html

lint: .venv/installed  ## ruff: rules and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: .venv/installed  ## ruff: mend what can be mended
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

typecheck: .venv/installed  ## mypy --strict
	$(BIN)/mypy

clean:  ## remove .venv and caches; runs stay
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis
