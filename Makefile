VENV := .venv
PYTHON := $(VENV)/bin/python
STAMP := $(VENV)/.installed

.PHONY: install test slow demo bench clean

install: $(STAMP)

$(STAMP): pyproject.toml
	python3 -m venv $(VENV)
	$(PYTHON) -m pip install --quiet --disable-pip-version-check torch==2.13.0
	$(PYTHON) -m pip install --quiet --disable-pip-version-check --editable '.[test]'
	touch $@

test: install
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	SCIPY_ARRAY_API=1 $(PYTHON) -m pytest

slow: install
	SCIPY_ARRAY_API=1 $(PYTHON) -m pytest -m slow

demo: install
	$(PYTHON) examples/demo.py

bench: install
	$(PYTHON) -m pip install --quiet --disable-pip-version-check --editable '.[bench]'
	$(PYTHON) benchmarks/kernel_product.py
	$(PYTHON) benchmarks/variance_cpu.py
	$(PYTHON) benchmarks/accuracy_time.py
	$(PYTHON) benchmarks/precision.py

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache
