# Everything a user or a CI does. `make` alone lists the targets.

SHELL := /bin/bash
BIN := .venv/bin
TIMED := infra/timed
STAMP := .venv/.made

# what one process has compiled, the hundred others that the targets start read
unexport PYTHONDONTWRITEBYTECODE
# the environment has all that is needed: those of another Spark's pyspark come before it; without this folder no module
# of infra is found
unexport PYTHONPATH PYTHONHOME PYTHONSAFEPATH

.DEFAULT_GOAL := help
.PHONY: help env jars stack stack-down demo check test test-spark-4.1 test-sizes torture bench bench-dlt bench-flink bench-sink lock clean

help: ## this list
	@grep -hE '^[a-z0-9.-]+:.*## ' $(MAKEFILE_LIST) | sort | awk -F ':.*## ' '{ printf "  make %-15s %s\n", $$1, $$2 }'

env: $(STAMP) ## build .venv from the locked requirements

$(STAMP): requirements/dev.lock requirements/java.lock pyproject.toml
	@$(TIMED) "build .venv" infra/environment .venv
	@touch $@

jars: env ## fetch the JARs of the lake and of the local stack
	@$(TIMED) "fetch JARs" $(BIN)/python -m infra.local fetch

stack: env ## start Kafka, Connect, MariaDB, PostgreSQL and S3 on this machine
	@$(TIMED) "start the stack" $(BIN)/python -m infra.local up
	@$(BIN)/python -m infra.local status

stack-down: env ## stop them; their data stays
	@$(TIMED) "stop the stack" $(BIN)/python -m infra.local down

demo: env ## the whole job, live, from source to star schema
	@$(TIMED) "demo" $(BIN)/python -m infra.demo

# mypy ends with 2 where its workers do not start within three seconds, which a busy machine takes
MYPY := $(SHELL) -c '$(BIN)/mypy --num-workers 2; code=$$?; [ $$code -ne 2 ] || exec $(BIN)/mypy; exit $$code'

check: env ## style, types, imports, and the tests that need no server
	@$(TIMED) "ruff check" $(BIN)/ruff check .
	@$(TIMED) "ruff format" $(BIN)/ruff format --check .
	@$(TIMED) "mypy" $(MYPY)
	@$(TIMED) "import contracts" $(BIN)/lint-imports
	@$(TIMED) "tests without Spark and servers" $(BIN)/python -m pytest -q -n 2 --dist loadfile --no-loadscope-reorder -m "not spark and not stack"

test: env ## check, and every other test
	@$(MAKE) --no-print-directory --jobs 2 check jars # one computes, the other waits for a download and for one JVM
	@$(TIMED) "tests with Spark and servers" $(BIN)/python -m pytest -q -n 2 --dist loadfile --no-loadscope-reorder -m "spark or stack"

# what another line of Spark has to do as well: recorded events, bronze, silver, gold, publish, a lake on S3, in Delta
TESTS_4.1 := $(addprefix tests/,unit/test_sparkline.py unit/test_java.py unit/test_session_conf.py \
	unit/test_recorded_source.py unit/test_bronze_rows.py unit/test_envelope.py unit/test_types.py unit/test_position.py \
	unit/test_silver_stage.py unit/test_tables_at_once.py unit/test_schema_change.py unit/test_key_changes.py unit/test_spans.py \
	unit/test_gold_stage.py unit/test_publish_stage.py unit/test_objects.py golden/test_recordings.py property/test_members_laws.py property/test_runs_laws.py \
	contract/test_table_format.py contract/test_delta_log.py contract/test_delta_merge.py contract/test_delta_maintenance.py \
	contract/test_sink.py contract/test_sink_values.py contract/test_fence.py unit/test_expressions.py \
	unit/test_sql.py::test_whatever_is_no_query_is_refused unit/test_sql.py::test_queries_are_let_through)

test-spark-4.1: .venv-4.1/.made ## the part of the tests that Spark 4.1 has to pass, in an environment of its own
	@$(TIMED) "fetch JARs of Spark 4.1" .venv-4.1/bin/python -m infra.local fetch postgres
	@$(TIMED) "tests with Spark 4.1" .venv-4.1/bin/python -m pytest -q -n 2 --dist loadfile --no-loadscope-reorder -m "not hudi" $(TESTS_4.1)

# the laws, the recorded cases and what decides about rows, which small batches of tests take one way through; without what
# is true of small work alone: its jobs, and tables side by side
SIZED := tests/golden tests/property $(addprefix tests/unit/,test_key_changes.py test_silver_stage.py test_schema_change.py \
	test_shapes_in_silver.py test_lone_tombstones.py test_whole_transactions.py test_history_table.py test_dead_letters.py \
	test_missing_rows.py test_purge.py test_gold_stage.py test_model_columns.py)
SIZES := some medium many

test-sizes: jars ## the same laws and cases with all work taken for larger work (SIZES="many")
	@for size in $(SIZES); do \
	  $(TIMED) "tests as $$size" $(BIN)/python -m pytest -q -n 2 --dist loadfile --no-loadscope-reorder --work-as $$size \
	    -m "spark and not stack and not hudi" -k "not takes_few_jobs and not gold_waits_while and not to_compute_them" $(SIZED) || exit 1; done

.venv-4.1/.made: requirements/spark-4.1.lock requirements/java.lock pyproject.toml
	@$(TIMED) "build .venv-4.1" infra/environment .venv-4.1 requirements/spark-4.1.lock
	@touch $@

TORTURE ?= # such as --seed 7 --minutes 10 drivers; see CONTRIBUTING.md
torture: jars ## kill a run at every point, again while it recovers, and compare everything (TORTURE="--minutes 10")
	@$(TIMED) "the long sweep" $(BIN)/python -m tests.torture.long $(TORTURE)

BENCH ?= # such as --size M --out benchmarks/reports/2026-11-23; see benchmarks/README.md
bench: jars ## measure beside other systems, every result checked, with a report in .cache (BENCH="--size M")
	@$(TIMED) "the benchmark" $(BIN)/python -m benchmarks.cdc_ch run $(BENCH)

bench-flink: env ## build what Flink needs to be a system of the benchmark
	@$(TIMED) "build Flink's environment" $(BIN)/python -m benchmarks.cdc_ch.environments flink

bench-sink: jars ## fetch what Debezium's JDBC sink needs to be one
	@$(TIMED) "fetch Debezium's JDBC sink" $(BIN)/python -m benchmarks.cdc_ch.environments sink

bench-dlt: env ## build what dlt needs to be one
	@$(TIMED) "build dlt's environment" $(BIN)/python -m benchmarks.cdc_ch.environments dlt

LOCK := uv pip compile --quiet --universal --python-version 3.10 --generate-hashes --no-annotate --no-header \
	--no-emit-index-url --no-emit-find-links --constraint requirements/constraints.in

LOCK_4.1 := $(subst constraints.in,constraints-4.1.in --override requirements/override-4.1.in,$(LOCK))

LOCK_EMR := $(filter-out --universal,$(subst 3.10,3.11,$(LOCK))) --python-platform x86_64-manylinux_2_28 \
	--no-emit-package pyspark --no-emit-package py4j

lock: ## write the requirement locks anew (needs uv)
	@command -v uv >/dev/null || { echo "uv is needed to resolve: pip install uv" >&2; exit 2; }
	@$(TIMED) "lock the environment" $(LOCK) --all-extras pyproject.toml --output-file requirements/dev.lock
	@$(TIMED) "lock the environment of Spark 4.1" $(LOCK_4.1) --all-extras pyproject.toml --output-file requirements/spark-4.1.lock
	@$(TIMED) "lock Java" $(LOCK) requirements/java.in --output-file requirements/java.lock
	@$(TIMED) "lock the benchmark's dlt" $(LOCK) benchmarks/requirements/dlt.in --output-file benchmarks/requirements/dlt.lock
	@$(TIMED) "lock what EMR has not" $(LOCK_EMR) pyproject.toml --output-file requirements/emr.lock
	@$(TIMED) "lock Flink" $(LOCK) --no-deps benchmarks/requirements/flink.in --output-file benchmarks/requirements/flink.lock

clean: ## stop the stack; remove the environment, data and caches of this checkout
	@if $(BIN)/python -c "import infra.local" 2>/dev/null; then $(BIN)/python -m infra.local down --delete; else \
	  born() { awk '{ sub(/.*\) /, "") } $$1 !~ /[ZX]/ { print $$20 }' "$$1" 2>/dev/null; }; \
	  for noted in .cache/stack/*/pid; do \
	    start=$$(born "$$noted"); \
	    if [ -n "$$start" ] && [ "$$start" = "$$(born "/proc/$$(cut -d " " -f 1 "$$noted")/stat")" ]; then \
	      echo "The stack runs, and without its environment nothing can stop it: \`make env\`, then \`make clean\`." >&2; exit 2; fi; \
	  done; fi
	rm -rf .venv .venv-4.1 .cache .demo .replicator build dist *.egg-info .mypy_cache .ruff_cache .import_linter_cache .hypothesis
