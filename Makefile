# Everything a user needs: `make demo` runs the main job, `make test` the tests; both set the machine up first.
.PHONY: demo test setup lint

demo: setup
	scripts/demo.sh

test: setup lint
	DESKFORK_REQUIRED_PROVIDERS="qemu $$(scripts/has-docker.sh && echo docker)" .venv/bin/pytest -rs

setup:
	scripts/setup.sh

lint:
	scripts/setup.sh python
	.venv/bin/ruff check
	.venv/bin/ruff format --check
	.venv/bin/mypy
