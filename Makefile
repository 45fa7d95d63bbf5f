# Everything works in .venv, which the first command makes.
PYTHON ?= python3
# Another torch for development: make test TORCH="torch==2.8.0"
TORCH ?= torch==2.13.0

BIN := .venv/bin
.DEFAULT_GOAL := help

.PHONY: help
help: ## Show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: .venv/demo.ready ## Rehearse a small training script with planted faults on a virtual GPU
	@tools/demo.sh

.PHONY: test
test: .venv/dev.ready ## Set up and run everything: all tests, real programs included
	@$(PYTHON) tools/set_up.py system
	@$(BIN)/pytest -n 2 --dist worksteal

.PHONY: check
check: .venv/dev.ready ## Format, lint, types, imports, unit tests: fastest first, under 90 seconds
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest -q -m "not full" -n 2 --dist worksteal

.PHONY: fix
fix: .venv/dev.ready ## Format the code, repair what the linter can, refresh translations and generated docs
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	$(BIN)/python tools/translations.py
	$(BIN)/python tools/gen_docs.py

.PHONY: bench
bench: .venv/dev.ready ## Measure what a rehearsal costs beside a plain run
	$(BIN)/python bench/rehearse.py

.PHONY: clean
clean: ## Remove the virtual environment, caches and recorded runs
	rm -rf .venv dist build .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
	find . -name .torchport -type d -prune -exec rm -rf {} +

.venv/%.ready: pyproject.toml tools/set_up.py
	@$(PYTHON) tools/set_up.py $* --torch "$(TORCH)"
