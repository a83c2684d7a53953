# Needs Python 3.11 or newer and make; everything else is fetched, pinned and hashed, into this folder.

PYTHON ?= python3
VENV := .venv
BENCH_VENV := .venv-bench
AUDIT_VENV := .venv-audit
DIST_VENV := .venv-dist
INTEROP := .interop
PY := $(VENV)/bin/python
BENCH_PY := $(BENCH_VENV)/bin/python

# Compiled once: a machine that forbids that would compile every test anew in every process of every run.
export PYTHONDONTWRITEBYTECODE :=

PIP := -m pip --disable-pip-version-check --quiet
COMPILE := $(VENV)/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-emit-find-links --no-header $(if $(UPGRADE),--exclude-newer "1 week")
# What a requirement file must never hold: an address, a host option or a path of somebody's machine.
ADDRESS := ://|^ *--(index|extra|find|trusted)|file:|(^| )[~/]
NO_ADDRESS = @if grep -nE '$(ADDRESS)' requirements*.txt || grep -n '"resolved"' $(PROGRAMS)/package-lock.json; then \
	echo 'an address or a path in a requirement file' >&2; exit 1; fi
# What `make interop` fetches from npm. Without npm what is pinned stays as it is.
PROGRAMS := tests/interop/js
PIN_PROGRAMS = npm $(if $(UPGRADE),update --min-release-age=7,install) --package-lock-only --prefix $(PROGRAMS) \
	--ignore-scripts --omit-lockfile-registry-resolved --no-audit --no-fund

# An environment of $(1) from the hashed files $(2): uv if pip can fetch it, else pip alone.
define environment
	@test -x $(1)/bin/python || $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed; say: make PYTHON=python3.11")'
	@test -x $(1)/bin/python || $(PYTHON) -m venv $(1)
	@echo "setting up $(1) from $(2)"
	@if $(1)/bin/python $(PIP) install --require-hashes --only-binary :all: -r requirements-uv.txt && \
	  $(1)/bin/uv pip install --quiet --python $(1)/bin/python --require-hashes $(addprefix -r ,$(2)); then :; else \
	  echo "uv is not usable here: pip does it, more slowly"; \
	  $(1)/bin/python $(PIP) install --require-hashes $(addprefix -r ,$(2)); fi
endef

.PHONY: help install run test interop check bench mutants torture audit dist lock pictures clean

help:
	@echo "make install   everything into $(VENV)"
	@echo "make run       set up, serve your agents' sessions from the default store, and open the page"
	@echo "make test      set up and run every test, PostgreSQL included"
	@echo "make interop   real programs: Claude Code, Codex, opencode, goose, Gemini CLI, the ACP SDK of TypeScript and acpx (needs npm), on the loopback interface"
	@echo "make check     ruff, mypy, import-linter, requirement files"
	@echo "make bench     measure against other libraries, in $(BENCH_VENV); writes docs/benchmarks.md"
	@echo "make mutants   break the code on purpose and see the tests notice"
	@echo "make torture   faults, load and attack on the whole program, for many hours; writes docs/scorecard.md. Some rows need root; as root it installs"
	@echo "               the programs that they lack, and says so. ARGS=--list shows what each row needs and took, and all together; ARGS=\"--only R1\" tries one"
	@echo "make audit     write the bill of materials, then ask for known faults of what is pinned (needs their public list)"
	@echo "make dist      build the wheel and the sdist, and try them in fresh environments"
	@echo "make lock      renew the pinned requirements"
	@echo "make pictures  draw the pictures of the documents again, from a made-up history"
	@echo "make clean     remove environments and caches"

# `make run` needs no more than this: the sources are used where they lie.
$(VENV)/.runtime: requirements.txt requirements-uv.txt
	$(call environment,$(VENV),requirements.txt)
	@touch $@

# The editable install is built by flit_core, pinned with the development packages: nothing unpinned is fetched.
$(VENV)/.ready: requirements.txt requirements-dev.txt requirements-uv.txt pyproject.toml
	$(call environment,$(VENV),requirements.txt requirements-dev.txt)
	@$(PY) $(PIP) install --no-deps --no-build-isolation --no-index --editable .
	@touch $(VENV)/.runtime $@

$(BENCH_VENV)/.ready: requirements-bench.txt requirements-uv.txt
	$(call environment,$(BENCH_VENV),requirements-bench.txt)
	@touch $@

install: $(VENV)/.ready
	@$(PY) -m compileall -q src

run: $(VENV)/.runtime
	PYTHONPATH=src $(PY) -m hitherto serve $(ARGS)

# The files of tests live in memory where there is enough of it and programs may be started from it: no waiting for a disk.
ROOM := $(shell df -Pk /dev/shm 2>/dev/null | awk 'NR == 2 && $$4 > 4000000')
MEMORY := $(if $(ROOM),$(shell mount | grep -q ' /dev/shm .*noexec' || echo TMPDIR=/dev/shm))

test: $(VENV)/.ready
	$(MEMORY) $(PY) -m pytest -n 4 --dist worksteal $(ARGS)

# Not a part of `make test`: programs of other makers, some of them from npm into $(INTEROP), and some minutes. They are fetched
# first, so that no test waits for it; then every part is run, whatever became of those before.
interop: $(VENV)/.ready
	$(PY) -m tests.interop.packages
	@trap 'exit 130' INT; failed=0; for part in \
	  "tests/interop/claude_cli.py tests/interop/codex_cli.py tests/interop/acp_typescript.py tests/interop/acp_acpx.py" \
	  "tests/interop/agents_sources.py tests/interop/acp_proxy.py" \
	  "-p tests.interop.schema_plugin tests/acp"; do echo "pytest $$part"; \
	  $(PY) -m pytest $$part $(ARGS) || { failed=1; echo "failed: $$part" >&2; }; done; exit $$failed

check: $(VENV)/.ready
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(PY) -m mypy
	$(VENV)/bin/lint-imports
	$(NO_ADDRESS)

bench: $(BENCH_VENV)/.ready $(VENV)/.ready
	PYTHONPATH=src BENCH_RUNTIME=$(PY) $(BENCH_PY) -m bench $(ARGS)

mutants: $(VENV)/.ready
	$(PY) -m tests.mutants $(ARGS)

# The engine of the fuzzers is not made for every machine; without it their row says so.
$(VENV)/.torture: $(VENV)/.ready requirements-torture.txt
	@$(PY) $(PIP) install --require-hashes --only-binary :all: -r requirements-torture.txt || echo "no fuzzing here"
	@touch $@

torture: $(VENV)/.torture
	PYTHONPATH=src $(PY) -m torture $(ARGS)

$(AUDIT_VENV)/.ready: requirements.txt requirements-audit.txt requirements-uv.txt
	$(call environment,$(AUDIT_VENV),requirements.txt requirements-audit.txt)
	@touch $@

# `--strict`: a package that could not be looked up is a failure, not a pass. One file after the other, to the last:
# their environments may differ in the version of a package.
audit: $(AUDIT_VENV)/.ready
	$(AUDIT_VENV)/bin/python -m supply
	@failed=0; for file in requirements*.txt; do echo "$$file"; \
	  $(AUDIT_VENV)/bin/pip-audit --strict --disable-pip --require-hashes -r "$$file" || failed=1; done; exit $$failed

$(DIST_VENV)/.ready: requirements-dist.txt requirements-uv.txt
	$(call environment,$(DIST_VENV),requirements-dist.txt)
	@touch $@

dist: $(DIST_VENV)/.ready
	$(DIST_VENV)/bin/python -m supply.dist

lock: $(VENV)/.ready
	$(COMPILE) $(UPGRADE) -o requirements.txt requirements.in
	$(COMPILE) $(UPGRADE) -o requirements-dev.txt requirements-dev.in
	$(COMPILE) $(UPGRADE) -o requirements-bench.txt requirements-bench.in
	$(COMPILE) $(UPGRADE) -o requirements-audit.txt requirements-audit.in
	$(COMPILE) $(UPGRADE) -o requirements-dist.txt requirements-dist.in
	$(COMPILE) $(UPGRADE) -o requirements-torture.txt requirements-torture.in
	$(COMPILE) $(UPGRADE) -o requirements-uv.txt requirements-uv.in
	@if command -v npm >/dev/null; then $(PIN_PROGRAMS); else echo "no npm: $(PROGRAMS) stays as it is"; fi
	$(NO_ADDRESS)

pictures: $(VENV)/.ready
	$(PY) -m tests.gateway.page.pictures docs/images

clean:
	rm -rf $(VENV) $(BENCH_VENV) $(AUDIT_VENV) $(DIST_VENV) $(INTEROP) dist build .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
