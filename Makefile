# Everything a user needs: `make demo` runs the main job, `make test` the tests; both set the machine up first.
.PHONY: demo test test-all setup lint

demo: setup
	scripts/demo.sh

test: setup lint
	scripts/setup.sh browser
	DESKFORK_REQUIRED_PROVIDERS="qemu $$(scripts/has-docker.sh && echo docker)" .venv/bin/pytest -rs

# All tasks of Spider2-V with each provider, where `test` takes a third of them.
test-all: export DESKFORK_ALL_TASKS = 1
test-all: test

setup:
	scripts/setup.sh

lint:
	scripts/setup.sh python
	.venv/bin/ruff check
	.venv/bin/ruff format --check
	.venv/bin/mypy
