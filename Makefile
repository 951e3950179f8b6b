# Every target sets up what it needs in .venv first; `make setup` is that part alone.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
# At least one test of every layer and toolset, none of which waits for a server or a large build.
QUICK  := tests/contract tests/runtime tests/settings tests/project/test_naming.py tests/project/test_design_page.py \
          $(addprefix tests/transports/test_,framing.py jsonrpc.py json_text.py content_length.py) \
          tests/toolsets/assets/test_patch.py tests/toolsets/assets/test_validation.py tests/toolsets/skills/test_tool.py \
          $(addprefix tests/toolsets/code/,query search/test_filters.py discovery analysis/formats) \
          $(addprefix tests/toolsets/launch/,gates/test_pages.py drive/test_states.py test_pages.py test_profiles.py)

.PHONY: help setup demo test quick lint contract browser engines networks docs picture conformance clients bench dist lock clean

help: ## Show the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/\1\t\2/' | expand -t 16

setup: $(READY) ## Create .venv with the locked dependencies

$(READY): requirements.txt requirements/dev.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Cleats needs Python 3.11 or newer; try make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	$(BIN)/python -m compileall -q src
	@touch $@

demo: $(READY) ## Start the server, talk to it with the official client, and show what happened
	$(BIN)/python examples/demo.py

test: lint contract $(READY) ## Lint, check the contract and run every test
	$(BIN)/python -m pytest -n 4

quick: lint $(READY) ## Lint and a representative subset of the tests, in about a minute
	$(BIN)/python -m pytest -n 4 $(QUICK)

lint: $(READY) ## Style, types and the layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

contract: $(READY) ## Refuse a contract change without its version bump, by cleats-contract.toml
	PATH="$(CURDIR)/$(BIN):$$PATH" cleats contract check

browser: $(READY) ## Every page and journey of the console in Chromium (PICTURES=docs takes the pictures of the documentation)
	@command -v chromium >/dev/null || test -n "$(CHROMIUM)" || sh tests/browser/install_chromium.sh
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/browser.txt
	CLEATS_PICTURES="$(PICTURES)" $(BIN)/python -m pytest -n 2 tests/browser -o python_files='check_*.py'

engines: $(READY) ## OpenSearch and S3 against real servers (needs a JDK, mvn, Go; SUITES chooses some; CLEATS_ENGINE_KILLS=20 for a soak)
	$(BIN)/python -m tests.engines $(SUITES)

networks: $(READY) ## A fleet on networks that fail, with PostgreSQL (root, iproute2, faketime; FAULTS=200, SEED repeats the faults)
	$(BIN)/python -m pytest -s tests/networks -o python_files='check_*.py'

docs: $(READY) ## Write the references, build the site, follow its links and run its code blocks
	$(BIN)/python -m book.reference
	$(BIN)/python -m book

picture: $(READY) ## Record the picture of a terminal from the running program
	$(BIN)/python -m book.picture

conformance: $(READY) ## The official MCP suite, the Inspector, client libraries, the types of OpenSearch (needs npm)
	$(BIN)/python -m conformance
	$(BIN)/python -m conformance.clients fastmcp_client mcp_sdk
	$(BIN)/python -m conformance.opensearch

clients: $(READY) ## Eight real agents and seven client libraries against a scripted model (needs npm, 4 GB, 15 minutes)
	$(BIN)/python -m conformance.clients

bench: $(READY) ## Every benchmark, side by side with its peers, as one table of ratios
	$(BIN)/python -m bench.all

dist: $(READY) ## Build the sdist and the wheel, twice, and check that they are identical and complete
	rm -rf dist build/dist
	SOURCE_DATE_EPOCH=1700000000 $(BIN)/python -m hatchling build -d dist
	SOURCE_DATE_EPOCH=1700000000 $(BIN)/python -m hatchling build -d build/dist
	diff -r dist build/dist
	$(PYTHON) -m venv build/twine
	build/twine/bin/pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dist.txt
	build/twine/bin/twine check --strict dist/*

lock: ## Resolve the newest allowed versions into requirements/ (needs uv)
	uv pip compile pyproject.toml --group dev --universal --python-version 3.11 \
	  --generate-hashes --no-header --no-emit-index-url --upgrade -o requirements/dev.txt
	uv pip compile --group dist --universal --python-version 3.11 \
	  --generate-hashes --no-header --no-emit-index-url --upgrade -o requirements/dist.txt
	printf 'playwright\naxe-playwright-python\n' | uv pip compile - -c requirements/dev.txt --universal \
	  --python-version 3.11 --generate-hashes --no-header --no-emit-index-url --upgrade -o requirements/browser.txt

clean: ## Remove what the other targets made
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .conformance node_modules
