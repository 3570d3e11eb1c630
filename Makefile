# Another Python: make demo PYTHON3=python3.13. A new environment replaces one of another version.
PYTHON3 := python3
ROOT := $(dir $(lastword $(MAKEFILE_LIST)))
VENV := $(ROOT).venv
PYTHON := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)/python
FOR_TEST := $(VENV)/.installed-test-$(notdir $(PYTHON3))
FOR_DEMO := $(VENV)/.installed-demo-$(notdir $(PYTHON3))

.PHONY: install test slow demo docs bench clean

install: $(FOR_TEST)

$(FOR_TEST): $(ROOT)pyproject.toml
	$(PYTHON3) $(ROOT)tools/install.py test $(VENV)
	touch $@

$(FOR_DEMO): $(ROOT)pyproject.toml
	$(PYTHON3) $(ROOT)tools/install.py demo $(VENV)
	touch $@

demo: $(FOR_DEMO)
	$(PYTHON) $(ROOT)examples/demo.py

test: install
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m mypy
	SCIPY_ARRAY_API=1 $(PYTHON) -m pytest -n 2

slow: install
	SCIPY_ARRAY_API=1 $(PYTHON) -m pytest -m slow

docs: install
	$(PYTHON) -m sphinx -b html -W --keep-going -q docs docs/_build/html

bench: install
	$(PYTHON) -m pip install --quiet --disable-pip-version-check --editable '.[bench]'
	$(PYTHON) benchmarks/kernel_product.py
	$(PYTHON) benchmarks/variance_cpu.py
	$(PYTHON) benchmarks/accuracy_time.py
	$(PYTHON) benchmarks/precision.py
	$(PYTHON) benchmarks/questions.py

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache docs/_build docs/gallery
