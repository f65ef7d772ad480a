# What a newcomer needs: `make demo`, `make test`. Nothing but Rust (cargo, rustc) is assumed: a C linker, LLVM and MLIR 22 are
# installed with apt where they are missing; the tests of XLA need its plugin, which comes through Python's pip.
# `make demo FEATURES=--no-default-features` builds the native compiler, which needs no LLVM.
.DEFAULT_GOAL := help
.PHONY: help demo test python package docs side-by-side pip plugins numpy report tpu leaks lanes lint bench rust llvm
SHELL := /bin/bash
CARGO ?= cargo
DEMO ?= target/demo
# XLA's plugins that the tests run on; `cpu tpu` compiles for TPUs, too
PLUGINS ?= cpu
NUMPY := $(CURDIR)/target/numpy
FEATURES ?=
# Where LLVM and MLIR 22 are, as for cargo (.cargo/config.toml)
MLIR_SYS_220_PREFIX ?= /usr/lib/llvm-22
LLVM_PACKAGES := llvm-22-dev libmlir-22-dev mlir-22-tools libclang-22-dev libpolly-22-dev zlib1g-dev libzstd-dev g++
SUDO := $(if $(filter 0,$(shell id -u)),,sudo)

help:
	@echo "make demo    build, run the squid axon and draw it"
	@echo "make test    all tests"
	@echo "make python  the Python package: build its wheel, test it in a fresh virtual environment"
	@echo "make docs    the book, everything it shows made by running it (Python 3.11 or newer)"
	@echo "make side-by-side   ten models in neuroc, NEURON, Brian2, NEST, Jaxley and NeuroML, compared (WRITE=1 writes their tables)"
	@echo "make report  open pages of runs in Chromium without a window: do they draw, do they zoom?"
	@echo "make plugins XLA's plugin for this processor (PLUGINS='cpu tpu': libtpu, too)"
	@echo "make tpu     compile squid, olive and every example for every TPU; writes benches/tpu.md"
	@echo "make leaks   does using XLA's plugins leave memory behind? LeakSanitizer tells"
	@echo "make lanes   the runtime's tests for AVX2 and for this machine's own instruction set"
	@echo "make lint    formatting, clippy, documentation: no complaint allowed"
	@echo "make bench   how fast the squid axon runs here"

rust:
	@command -v $(CARGO) >/dev/null && command -v rustc >/dev/null || { \
		echo "Rust is missing: install it from https://rustup.rs (1.89 or newer), then try again"; exit 1; }
	@command -v cc >/dev/null || { \
		echo "a C linker (cc) is missing: installing gcc"; \
		$(SUDO) apt-get update -q && $(SUDO) apt-get install -y -q --no-install-recommends gcc libc6-dev; } || { \
		echo "gcc could not be installed; install a C linker (cc) by hand, then try again"; exit 1; }

# Only to build: LLVM and MLIR are linked into neuroc.
llvm: rust
	@case "$(FEATURES)" in *--no-default-features*) exit 0;; esac; \
	prefix="$(MLIR_SYS_220_PREFIX)"; \
	if [ -e "$$prefix/lib/libMLIRIR.a" ] && [ -e "$$prefix/lib/libPolly.a" ] && command -v c++ >/dev/null; then exit 0; fi; \
	echo "LLVM and MLIR 22 are missing: installing them"; \
	$(SUDO) apt-get update -q && $(SUDO) apt-get install -y -q --no-install-recommends $(LLVM_PACKAGES) || { \
		echo "LLVM 22 could not be installed; install $(LLVM_PACKAGES) by hand, or do without XLA: FEATURES=--no-default-features"; \
		exit 1; }

demo: llvm
	@mkdir -p $(DEMO)
	$(CARGO) run --release --locked $(FEATURES) -- run examples/squid.neuro -o $(DEMO)/squid.npz --plot $(DEMO)/squid.svg
	@echo "the plot is $(abspath $(DEMO))/squid.svg (open it in a browser)"

pip:
	@python3 -m pip --version >/dev/null 2>&1 || { \
		echo "Python's pip is missing: installing it"; \
		$(SUDO) apt-get update -q && $(SUDO) apt-get install -y -q --no-install-recommends python3 python3-pip; } || { \
		echo "pip could not be installed; install Python 3 with pip by hand, then try again"; exit 1; }

# Plugins lie in the user's cache, where neuroc finds them; what is there is not fetched again.
plugins: llvm pip
	$(CARGO) run --locked --quiet -- devices $(PLUGINS:%=--install %)

# For the tests that draw the study's networks again, which skip themselves without it; python3 finds it through PYTHONPATH.
numpy: pip
	@PYTHONPATH=$(NUMPY) python3 -c 'import numpy' 2>/dev/null || \
		python3 -m pip install --quiet --no-input --only-binary :all: --upgrade --target $(NUMPY) numpy

# Without Chromium the tests that open pages say so and pass.
report: llvm
	@command -v chromium chromium-browser google-chrome >/dev/null || { \
		echo "Chromium is missing: installing it"; \
		$(SUDO) apt-get update -q && $(SUDO) apt-get install -y -q --no-install-recommends chromium; } || { \
		echo "Chromium could not be installed; install it by hand, then try again"; exit 1; }
	NEUROC_TESTS_DEMAND_TOOLS=1 $(CARGO) test --locked $(FEATURES) --test suite report::

# cargo-nextest is faster, and shows times; without it plain `cargo test` runs the same tests.
test: llvm
	@[[ "$(FEATURES)" == *--no-default-features* ]] || $(MAKE) --no-print-directory plugins || echo "without XLA's plugin its tests are skipped"
	@if $(CARGO) nextest --version >/dev/null 2>&1; then \
		set -e; $(CARGO) nextest run --locked $(FEATURES) --no-fail-fast; $(CARGO) test --locked $(FEATURES) --doc; \
	else \
		echo "cargo-nextest is not installed: plain cargo test"; $(CARGO) test --locked $(FEATURES) --no-fail-fast; \
	fi

# The wheel has what FEATURES says, XLA if it says nothing, and shares its build with that of `make test`.
PYTHON_DIR := $(abspath $(or $(CARGO_TARGET_DIR),target))/python
WHEEL_FEATURES = $(if $(findstring --no-default-features,$(FEATURES)),,--features xla)
MATURIN_FLAGS ?=
package: llvm
	@python3 -c 'import ensurepip, venv' 2>/dev/null || { \
		echo "Python's venv is missing: installing it"; \
		$(SUDO) apt-get update -q && $(SUDO) apt-get install -y -q --no-install-recommends python3 python3-venv; } || { \
		echo "venv could not be installed; install Python 3.10 or newer with venv by hand, then try again"; exit 1; }
	@rm -rf $(PYTHON_DIR)/wheels
	python3 -m venv --clear $(PYTHON_DIR)/venv
	$(ALONE) $(PYTHON_DIR)/venv/bin/pip install --quiet --no-input --only-binary :all: "maturin>=1.9.4,<2" -r python/tests/requirements.txt
	$(PYTHON_DIR)/venv/bin/maturin build --profile dev --locked --strip --compatibility linux $(WHEEL_FEATURES) $(MATURIN_FLAGS) --out $(PYTHON_DIR)/wheels
	$(ALONE) $(PYTHON_DIR)/venv/bin/pip install --quiet --no-input --no-deps $(PYTHON_DIR)/wheels/*.whl

# What stands on the user's PYTHONPATH must not hide the packages of an environment.
ALONE := env -u PYTHONPATH
python: package
	$(ALONE) $(PYTHON_DIR)/venv/bin/python -m pytest -q -p no:cacheprovider python/tests
	$(PYTHON_DIR)/venv/bin/python -m mypy --strict --python-version 3.10 --cache-dir $(PYTHON_DIR)/mypy -p neuroc

# The book is run by the package of `make python`, as it was built last; without one it is built first. A cell that fails, a link that leads
# nowhere and any other warning stop the build.
DOCS_DIR := $(abspath $(or $(CARGO_TARGET_DIR),target))/docs
SPHINXFLAGS ?= -j 2
docs:
	@$(PYTHON_DIR)/venv/bin/python -c 'import neuroc' 2>/dev/null || $(MAKE) --no-print-directory package
	$(ALONE) $(PYTHON_DIR)/venv/bin/pip install --quiet --no-input --only-binary :all: -r docs/requirements.txt
	$(ALONE) NEUROC_BOOK_WORK=$(DOCS_DIR)/work $(PYTHON_DIR)/venv/bin/python -m sphinx -W --keep-going -n -q $(SPHINXFLAGS) -b html \
		-d $(DOCS_DIR)/doctrees docs $(DOCS_DIR)/html
	@echo "the book is $(DOCS_DIR)/html/index.html (open it in a browser)"

# The wheel is the one of `make python`. jNeuroML needs Java, NEURON's .mod files a C++ compiler.
SIDE_BY_SIDE := $(abspath $(or $(CARGO_TARGET_DIR),target))/side_by_side/venv
WRITE ?=
side-by-side:
	@ls $(PYTHON_DIR)/wheels/*.whl >/dev/null 2>&1 || $(MAKE) --no-print-directory package
	@{ command -v java && command -v c++; } >/dev/null || { \
		echo "Java or a C++ compiler is missing: installing them"; \
		$(SUDO) apt-get update -q && $(SUDO) apt-get install -y -q --no-install-recommends default-jre-headless g++; } || { \
		echo "Java and g++ could not be installed; install them by hand, then try again"; exit 1; }
	python3 -m venv --clear $(SIDE_BY_SIDE)
	$(SIDE_BY_SIDE)/bin/pip install --quiet --no-input --only-binary :all: -r docs/side_by_side/requirements.txt
	$(SIDE_BY_SIDE)/bin/pip install --quiet --no-input --no-deps $(PYTHON_DIR)/wheels/*.whl
	$(ALONE) $(SIDE_BY_SIDE)/bin/python docs/side_by_side/run.py --demand neuron,brian2,nest,jaxley,neuroml $(if $(WRITE),--write)

# Minutes: several forms of every connected network are compiled for each chip. Nothing runs on a TPU.
tpu: llvm
	$(CARGO) bench --profile dev --locked --bench tpu > target/tpu.md
	@if [ -s target/tpu.md ]; then cp target/tpu.md benches/tpu.md; fi

# GCC's LeakSanitizer is loaded before all else, so that it sees the plugins' memory, too.
leaks: plugins
	@PATH=$$PATH:/sbin:/usr/sbin ldconfig -p | grep -q liblsan.so.0 || { \
		echo "LeakSanitizer is missing: installing it"; \
		$(SUDO) apt-get update -q && $(SUDO) apt-get install -y -q --no-install-recommends liblsan0; } || { \
		echo "LeakSanitizer could not be installed; install gcc's liblsan.so.0 by hand, then try again"; exit 1; }
	$(CARGO) test --locked --test leaks

# Vectors differ from machine to machine; a default build knows only the portable ones.
lanes: rust
	@mkdir -p target/lanes; set -e; cpus=native; \
	if grep -qw avx2 /proc/cpuinfo 2>/dev/null; then cpus="x86-64-v3 native"; \
	else echo "this machine has no AVX2: its lanes are not tested"; fi; \
	grep -qw avx512dq /proc/cpuinfo 2>/dev/null || echo "this machine has no AVX-512: its lanes are not tested"; \
	for cpu in $$cpus; do \
		echo "runtime tests, target-cpu=$$cpu"; \
		rustc --test --edition 2024 -C opt-level=1 -C target-cpu=$$cpu tests/runtime/lib.rs -o target/lanes/$$cpu; \
		target/lanes/$$cpu --quiet; \
	done

lint: llvm
	@$(CARGO) fmt --version >/dev/null 2>&1 || { echo "rustfmt is missing: rustup component add rustfmt"; exit 1; }
	@$(CARGO) clippy --version >/dev/null 2>&1 || { echo "clippy is missing: rustup component add clippy"; exit 1; }
	$(CARGO) fmt --all --check
	$(CARGO) clippy --locked --workspace --features neuroc-python/xla --all-targets -- -D warnings
	RUSTDOCFLAGS=-Dwarnings $(CARGO) doc --locked --no-deps

bench: llvm
	$(CARGO) build --release --locked $(FEATURES)
	$(CARGO) run --release --locked --quiet $(FEATURES) -- bench examples/squid.neuro --set n=10000 --dt 0.025ms --threads 1
	$(CARGO) run --release --locked --quiet $(FEATURES) -- bench examples/squid.neuro --set n=10000 --dt 0.025ms --threads 1 --precision f32
