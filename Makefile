# Every target sets up its own environment in .venv from nothing: Python 3.11 or newer, make and git are enough.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test docs lint bench results trust audit sbom clean

demo: .venv/demo
	$(BIN)/eigentime demo

test: lint
	OMP_NUM_THREADS=1 $(BIN)/pytest

lint: .venv/ready
	$(BIN)/ruff format --check src tests benchmarks tools plugins
	$(BIN)/ruff check src tests benchmarks tools plugins
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

# what our own work costs beside the network's, as ratios: half an hour on an idle machine
bench: .venv/ready
	$(BIN)/python benchmarks/speed.py
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/growth.py
	$(BIN)/python benchmarks/draws.py
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/scale.py

# faults, hostile files, wrong calls and long runs: at most 45 minutes on two idle cores; interrupted, it goes on
trust: .venv/trust
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/trust/fuzz.py & fuzz=$$!; \
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/trust/faults.py; faults=$$?; \
	wait $$fuzz && test $$faults -eq 0
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/trust/edge.py & edge=$$!; \
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/trust/soak.py; soak=$$?; \
	wait $$edge && test $$soak -eq 0

# known holes in what constraints.txt pins, asked over the web
audit: .venv/trust
	$(BIN)/python tools/audit.py

# what is installed here and why, as CycloneDX
sbom: .venv/ready
	$(BIN)/python tools/sbom.py sbom.json

# every number in README and docs: many hours on two cores; interrupted, the same command goes on
results: private SHELL := tools/once
results: .venv/ready
	$(MAKE) bench
	$(BIN)/eigentime reproduce binomial
	$(BIN)/eigentime reproduce countdown
	$(BIN)/eigentime reproduce music
	$(BIN)/eigentime reproduce images --fid uniform:16,ods:16
	$(BIN)/eigentime reproduce text --models text,text-sedd,text-uniform
	$(BIN)/eigentime reproduce text --models trigram-exact --jys-samples 64
	$(BIN)/eigentime reproduce choosing
	$(BIN)/eigentime reproduce dynamics
	$(BIN)/eigentime reproduce lists
	$(BIN)/eigentime reproduce mnist
	$(BIN)/eigentime reproduce mnist --model mnist-uniform
	$(BIN)/eigentime reproduce stories
	$(BIN)/eigentime reproduce stories --network stories-sedd
	$(BIN)/python benchmarks/fid.py
	$(BIN)/python benchmarks/music_networks.py
	$(BIN)/python benchmarks/antiberty.py
	$(BIN)/python benchmarks/plans.py
	$(BIN)/python benchmarks/zoo.py
	$(BIN)/python benchmarks/countdown_uniform.py
	$(BIN)/python benchmarks/ordering.py
	$(BIN)/python benchmarks/reactions.py
	$(BIN)/python benchmarks/budget.py
	$(BIN)/python benchmarks/coverage.py
	$(BIN)/python benchmarks/coverage_clocks.py
	$(BIN)/python benchmarks/clumping.py
	$(BIN)/python benchmarks/places.py
	$(BIN)/python benchmarks/engines.py
	$(BIN)/python benchmarks/gemma.py
	$(BIN)/python benchmarks/stories.py
	$(BIN)/python benchmarks/stories_limits.py
	$(BIN)/python benchmarks/recommending.py
	$(BIN)/python benchmarks/published.py
	$(BIN)/python benchmarks/reactions.py --reactions 24
	$(BIN)/python benchmarks/trust/edge.py
	$(BIN)/python tools/readme.py
	rm -r .results

# the site, with its notebooks run; broken links and anything loaded from elsewhere stop it
docs: .venv/docs
	PATH="$(CURDIR)/$(BIN):$$PATH" OMP_NUM_THREADS=1 $(BIN)/mkdocs build --strict --clean --quiet

# the demo needs the core and figures, everything else much more
.venv/demo: EXTRAS = figures
.venv/docs: EXTRAS = docs
.venv/ready: EXTRAS = dev
.venv/trust: EXTRAS = dev,trust
.venv/demo .venv/docs .venv/ready .venv/trust: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[$(EXTRAS)]'
	touch $@

clean:
	rm -rf .venv eigentime-demo site
