# Two commands on a machine with only Python and make:
#
#   make demo          searches on real data, with their plans, times and a figure
#   make test          all checks and tests, with the newest and with the oldest supported versions
#
# and their parts: make lint, make unit, make test-oldest, make clean; make thorough, which runs the cases that
# make test leaves out, and kills workers again and again; and make docs, which builds the site. Each makes the virtual environment it needs, and again when
# pyproject.toml changes. `make PYTHON=python3.12 test` chooses another Python.

PYTHON ?= python3
JOBS ?= 2

VENV := .venv
OLDEST := .venv-oldest
# Without --no-compile, pip spends a third of its time compiling modules that are never imported. The others are
# compiled by the first process that imports them, and not by each again: some environments forbid to keep that.
unexport PYTHONDONTWRITEBYTECODE
PIP_INSTALL := -m pip install -qq --no-compile --no-input --disable-pip-version-check
PACKAGES_OF = $$($(1)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
# One thread for each test process: JOBS of them share the cores.
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
PYTEST_ON = $(ONE_THREAD) $(VENV)/bin/python -m pytest -q --dist worksteal -m "not thorough" -n
PYTEST := $(PYTEST_ON) $(JOBS)
# The suite takes one process more: tests of clusters wait, for seconds some of them.
PYTEST_SUITE := $(PYTEST_ON) $(shell expr $(JOBS) + 1)
# What runs beside the suite takes a third as many processes; 0 is none but its own.
PYTEST_BESIDE := $(PYTEST_ON) $(shell expr $(JOBS) / 3)
# scikit-learn's own tests, aimed at manyfit: with the switch that its array API tests need, and its own warnings.
UPSTREAM := SCIPY_ARRAY_API=1 $(PYTEST_BESIDE) -W default tests/upstream
# What stands there under scikit-learn's names has its examples too, which scikit-learn tests. Two families have
# none, and cannot be imported without their library.
THEIRS := $(patsubst %,--ignore=manyfit/%.py,estimators/__init__ metrics/__init__ metrics/pairwise model_selection/__init__ \
  families/boosting_libraries/_lightgbm families/boosting_libraries/_xgboost)
PYTEST_OLDEST := $(subst $(VENV)/,$(OLDEST)/,$(PYTEST))
# One problem of each family, and one case of two tests of each module that meets other libraries: what an old
# version lacks shows in any of them. `make test-oldest` runs everything.
OLDEST_FUZZER = $(addprefix tests/differential/,test_differential.py test_frames.py)
OLDEST_FOLDERS = $(addprefix tests/,behaviour device units/introspection)
OLDEST_BESIDE := $(subst $(VENV)/,$(OLDEST)/,$(PYTEST_BESIDE))

.PHONY: help demo docs links test lint unit doctest suite upstream thorough oldest-short oldest-fuzzer oldest-folders \
  test-oldest python clean

help:
	@sed -n '/^#/!q; s/^# \{0,1\}//p' Makefile

demo: $(VENV)/.demo
	@$(VENV)/bin/python -m examples.demo

# The suite runs, and beside it one thing after the other, which fill the cores while tests of clusters wait: linters
# first, whose knowledge of types tests use. The examples go before the suite, since they leave compiled modules for
# all that follows.
test:
	$(MAKE) -j 2 BEFORE_SUITE=doctest suite lint oldest-folders upstream oldest-fuzzer

lint: $(VENV)/.test
	$(VENV)/bin/ruff check
	$(VENV)/bin/ruff format --check
	$(VENV)/bin/mypy
	$(VENV)/bin/python -m tests.docstrings

unit: doctest suite upstream

doctest: $(VENV)/.doctest
	$(ONE_THREAD) $(VENV)/bin/python -m pytest -q --doctest-modules manyfit $(THEIRS)

suite: $(VENV)/.test | $(BEFORE_SUITE)
	$(PYTEST_SUITE) --ignore=tests/upstream

upstream: $(VENV)/.test
	$(UPSTREAM)

# The site, in build/docs: the pages as they are in this repository, and the docstrings of what manyfit adds.
docs: $(VENV)/.docs
	rm -rf build/docs build/pages && mkdir -p build/pages
	cp -R docs/*.md docs/images README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md build/pages
	cp -R docs/site/* build/pages
	$(VENV)/bin/python -m sphinx -q -W --keep-going -b html build/pages build/docs

# Asks other sites for the pages that ours link to. The site has to be built.
links:
	$(VENV)/bin/python -m sphinx -q -b linkcheck -D plot_gallery=0 build/pages build/links

thorough: $(VENV)/.test
	$(PYTEST) -m thorough --ignore=tests/upstream
	$(UPSTREAM) -m thorough

oldest-short: oldest-fuzzer oldest-folders

oldest-fuzzer: $(OLDEST)/.test
	MANYFIT_FUZZ_EXAMPLES=1 $(OLDEST_BESIDE) $(OLDEST_FUZZER)

oldest-folders: $(OLDEST)/.test
	$(OLDEST_BESIDE) -m "not slow and not thorough" --cases 1 --tests 2 $(OLDEST_FOLDERS)

test-oldest: $(OLDEST)/.test
	$(PYTEST_OLDEST) --ignore=tests/upstream
	$(subst $(VENV)/,$(OLDEST)/,$(UPSTREAM))

$(VENV)/.demo: pyproject.toml | python
	@echo "Installing into $(@D) what the demo needs ..."
	@$(PYTHON) -m venv $(@D)
	@$(@D)/bin/python $(PIP_INSTALL) -e '.[demo]'
	@touch $@

$(VENV)/.doctest: pyproject.toml | python
	@echo "Installing into $(@D) what the examples need ..."
	@$(PYTHON) -m venv $(@D)
	-@$(@D)/bin/python $(PIP_INSTALL) --upgrade pip  # a pip of 2023 takes twice as long for the rest
	@$(@D)/bin/python $(PIP_INSTALL) -e '.[demo,doctest]'
	@touch $(@D)/.demo $@

# The examples run meanwhile: what they import is there.
$(VENV)/.test: $(VENV)/.doctest
	@echo "Installing into $(@D) what the tests need ..."
	@$(@D)/bin/python $(PIP_INSTALL) 'manyfit[test]'  # of the manyfit that is installed
	@touch $@

$(VENV)/.docs: $(VENV)/.demo
	@echo "Installing into $(@D) what the site needs ..."
	@$(@D)/bin/python $(PIP_INSTALL) -e '.[docs]'
	@touch $@

# What has no bound, pip too, is that of the other environment, which pip looks at.
$(OLDEST)/.test: $(VENV)/.test tests/oldest.txt
	@echo "Installing into $(@D) the oldest supported versions ..."
	@rm -rf $(@D)
	@$(PYTHON) -m venv --without-pip $(@D)
	@echo $(call PACKAGES_OF,$(VENV)) > $(call PACKAGES_OF,$(@D))/newest.pth
	@$(@D)/bin/python $(PIP_INSTALL) -c tests/oldest.txt -e '.[unit]'
	@touch $@

python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "manyfit needs Python 3.11 or newer, and $(PYTHON) is $$($(PYTHON) --version 2>/dev/null || echo not installed)." \
	    "Name another one: make PYTHON=python3.12 test" >&2; exit 1; }

clean:
	rm -rf $(VENV) $(OLDEST) .pytest_cache .mypy_cache .ruff_cache .hypothesis
