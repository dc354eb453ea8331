# SPDX-License-Identifier: GPL-2.0-or-later
# kbisect: `make help` lists the targets.

BUILD ?= build
VARIANT ?=
CC ?= gcc
PREFIX ?= /usr/local
Q ?= @

OUT := $(BUILD)$(if $(VARIANT),/$(VARIANT))

WARN := -Wall -Wextra -Wshadow -Wvla -Wmissing-prototypes -Wstrict-prototypes \
	-Wwrite-strings -Wconversion -Werror
comma := ,
SANITIZE := $(if $(filter asan,$(VARIANT)),-fsanitize=address$(comma)undefined \
	-fno-sanitize-recover=all -fno-omit-frame-pointer)
CFLAGS ?= -O2 -g
KB_CFLAGS = -std=gnu17 -D_GNU_SOURCE -I. $(WARN) $(CFLAGS) $(SANITIZE) -MMD -MP \
	-DKB_DATA_DIR='"$(PREFIX)/share/kbisect"'

PKGS := libvirt libssh libgit2 jansson nettle
# Asked for only when something is compiled, so that `make setup` works on a bare machine.
PKG_CFLAGS = $(shell pkg-config --cflags $(PKGS))
PKG_LIBS = $(shell pkg-config --libs $(PKGS)) -lRmath -lgsl -lgslcblas -lm

# ---- sources, by layer (docs/ARCHITECTURE.md) ----

BASE_SRC := $(addprefix harness/base/,clock.c error.c fs.c hash.c log.c mem.c proc.c str.c)

PURE_SRC := bisect/posterior.c bisect/posterior_noise.c bisect/posterior_reach.c \
	bisect/posterior_two.c bisect/plan.c bisect/plan_table.c bisect/decide_bayes.c \
	bisect/decide_bayes_calibrate.c bisect/decide_bayes_search.c bisect/decide_bayes_final.c bisect/sim.c bisect/sim_world.c \
	bisect/sim_rules.c bisect/dag.c bisect/pick.c bisect/decide.c bisect/decide_confirm.c \
	bisect/decide_model.c bisect/decide_rule.c bisect/stats.c harness/bisectlog.c \
	harness/build_log.c harness/cpio.c harness/crash.c harness/guestdoc.c harness/kversion.c \
	harness/sample.c harness/vm_domxml.c harness/workload.c

FILE_SRC := harness/job.c harness/job_check.c harness/job_options.c harness/job_reference.c \
	results/journal.c results/json_util.c results/pairs.c results/record.c results/report.c \
	results/report_text.c results/run.c

ADAPTER_SRC := bisect/repo.c bisect/repo_bases.c bisect/repo_checkout.c bisect/repo_commits.c \
	bisect/repo_pathlist.c bisect/repo_range.c bisect/repo_simplify.c harness/boot.c \
	harness/boot_shell.c harness/boot_start.c harness/build.c harness/build_config.c \
	harness/build_slot.c harness/build_store.c harness/build_toolchain.c harness/cache.c \
	harness/console.c harness/guest_channel.c harness/guest_keys.c harness/guest_ssh.c \
	harness/vm_libvirt.c harness/vm_libvirt_pump.c harness/vm_slot.c

SESSION_SRC := harness/doctor.c harness/doctor_kvm.c harness/host.c harness/measure.c \
	harness/paths.c harness/session.c harness/session_create.c harness/session_judge.c \
	harness/session_replay.c harness/session_report.c \
	harness/session_state.c harness/survey.c harness/unit.c

CMD_SRC := harness/cmd_bisect.c harness/cmd_common.c harness/cmd_doctor.c harness/cmd_gc.c harness/cmd_job.c \
	harness/cmd_judge.c harness/cmd_measure.c harness/cmd_next.c harness/cmd_report.c \
	harness/cmd_shell.c harness/cmd_sim.c harness/cmd_unit.c harness/opts.c harness/progress.c

LIB_SRC := $(BASE_SRC) $(PURE_SRC) $(FILE_SRC) $(ADAPTER_SRC) $(SESSION_SRC) $(CMD_SRC)
LIB_OBJ := $(LIB_SRC:%.c=$(OUT)/obj/%.o)
LIB := $(OUT)/libkbisect.a

##@ Main

.DEFAULT_GOAL := help

## help: this list
help:
	@awk '/^##@/ { printf "\n%s\n", substr($$0, 5) } \
	      /^## [a-z-]+:/ { sub(/^## /, ""); i = index($$0, ":"); \
	      printf "  make %-16s %s\n", substr($$0, 1, i - 1), substr($$0, i + 2) }' $(MAKEFILE_LIST)

## all: the program, the QEMU wrapper, the guest programs
all: $(OUT)/kbisect $(OUT)/kbisect-qemu $(BUILD)/guest/init

$(OUT)/obj/%.o: %.c
	@mkdir -p $(@D)
	@echo "  CC      $<"
	$(Q)$(CC) $(KB_CFLAGS) $(PKG_CFLAGS) -c -o $@ $<

$(LIB): $(LIB_OBJ)
	@echo "  AR      $@"
	$(Q)rm -f $@ && $(AR) rcs $@ $(LIB_OBJ)

$(OUT)/kbisect: $(OUT)/obj/harness/main.o $(LIB)
	@echo "  LD      $@"
	$(Q)$(CC) $(KB_CFLAGS) -o $@ $^ $(PKG_LIBS)

$(OUT)/kbisect-qemu: $(OUT)/obj/harness/qwrap.o
	@echo "  LD      $@"
	$(Q)$(CC) $(CFLAGS) $(SANITIZE) -o $@ $^

# ---- guest programs: static, for the initramfs ----

GUEST_CFLAGS = -std=gnu17 -D_GNU_SOURCE -I. $(WARN) -O2 -g0 -MMD -MP
INIT_SRC := $(addprefix guest-init/,bridge.c console.c counters.c handshake.c init.c params.c \
	result.c run.c scratch.c util.c wl.c wl_fault.c wl_none.c wl_table.c wl_trunc.c)

$(BUILD)/guest/obj/%.o: %.c
	@mkdir -p $(@D)
	@echo "  CC [G]  $<"
	$(Q)$(CC) $(GUEST_CFLAGS) -c -o $@ $<

$(BUILD)/guest/init: $(INIT_SRC:%.c=$(BUILD)/guest/obj/%.o)
	@echo "  LD [G]  $@"
	$(Q)$(CC) -static -s -o $@ $^ -lnettle

$(BUILD)/image/base.cpio: $(BUILD)/guest/init images/build-image.sh
	@mkdir -p $(@D)
	@echo "  IMAGE   $@"
	$(Q)images/build-image.sh --init $(BUILD)/guest/init --out $@

## image: the guest image (initramfs) from Debian packages
image: $(BUILD)/image/base.cpio

## setup: install the Debian packages and the account that everything needs
setup:
	$(Q)scripts/setup.sh

# ---- the demo ----

HISTORY_SOURCE ?= /usr/src/linux-source-6.1.tar.xz
HISTORY := $(BUILD)/history/linux.git
export KBISECT_HOME ?= $(abspath $(BUILD))/state
export KBISECT_CACHE ?= $(abspath $(BUILD))/cache

## history: the known-answer kernel history that the demo bisects
history: setup
	$(Q)tests/history/make-history.sh --source $(HISTORY_SOURCE) --out $(HISTORY)

## demo: set everything up and find a truncate regression in a real kernel
demo: setup
	$(Q)$(MAKE) --no-print-directory all image history
	$(BUILD)/kbisect bisect --repo $(HISTORY) --good demo-good --bad demo-bad \
		--job trunc-demo

##@ Checks

UNIT_TESTS := $(patsubst tests/unit/%.c,%,$(wildcard tests/unit/test_*.c))
COMPONENT_TESTS := $(patsubst tests/component/%.c,%,$(wildcard tests/component/test_*.c))
UNIT_BIN := $(UNIT_TESTS:%=$(OUT)/tests/unit/%)
COMPONENT_BIN := $(COMPONENT_TESTS:%=$(OUT)/tests/component/%)
FUZZ := $(patsubst tests/fuzz/%.c,%,$(wildcard tests/fuzz/fuzz_*.c))
REPLAY_BIN := $(FUZZ:%=$(OUT)/tests/fuzz/%)

# The guest's modules, compiled for the host, so that they are tested without a VM.
GUEST_LIB := $(OUT)/libguest.a
GUEST_LIB_OBJ := $(patsubst %.c,$(OUT)/obj/%.o,$(filter-out guest-init/init.c,$(INIT_SRC)))

$(GUEST_LIB): $(GUEST_LIB_OBJ)
	$(Q)rm -f $@ && $(AR) rcs $@ $(GUEST_LIB_OBJ)

$(OUT)/tests/unit/%: $(OUT)/obj/tests/unit/%.o $(GUEST_LIB) $(LIB)
	@mkdir -p $(@D)
	$(Q)$(CC) $(KB_CFLAGS) -o $@ $^ $(PKG_LIBS)

$(OUT)/tests/component/%: $(OUT)/obj/tests/component/%.o $(GUEST_LIB) $(LIB)
	@mkdir -p $(@D)
	$(Q)$(CC) $(KB_CFLAGS) -o $@ $^ $(PKG_LIBS)

$(OUT)/tests/fake-unit: $(OUT)/obj/tests/fake/unit.o $(LIB)
	@mkdir -p $(@D)
	$(Q)$(CC) $(KB_CFLAGS) -o $@ $^ $(PKG_LIBS)

# The corpus is replayed with a plain driver; `make fuzz` uses libFuzzer.
$(OUT)/tests/fuzz/%: $(OUT)/obj/tests/fuzz/%.o $(OUT)/obj/tests/fuzz/replay.o $(LIB)
	@mkdir -p $(@D)
	$(Q)$(CC) $(KB_CFLAGS) -o $@ $^ $(PKG_LIBS)

.PRECIOUS: $(OUT)/obj/%.o

test-programs: all $(OUT)/tests/fake-unit $(UNIT_BIN) $(COMPONENT_BIN) $(REPLAY_BIN)

PROVE := prove --merge --timer
CHECK_ENV = KBISECT=$(abspath $(OUT))/kbisect KB_SRC=$(CURDIR) KB_OUT=$(abspath $(OUT)) \
	KB_BUILD=$(abspath $(BUILD))

## check: unit, component and command-line tests; no VM, no kernel build; under two minutes
check: test-programs
	$(Q)env -u KBISECT_HOME -u KBISECT_CACHE $(CHECK_ENV) $(PROVE) -j2 --exec '' \
		$(UNIT_BIN) $(COMPONENT_BIN) $(sort $(wildcard tests/cli/*.t)) \
		$(sort $(wildcard tests/component/*.t)) tests/layers.sh tests/fuzz/replay.t

## test: set everything up and run every test, real kernels and VMs included
test: setup
	$(Q)$(MAKE) --no-print-directory all image history
	$(Q)env $(CHECK_ENV) tests/run-all.sh

## asan: `make check` with AddressSanitizer and UBSan
asan:
	$(Q)BISECT_AGREE_DAGS=30 $(MAKE) --no-print-directory VARIANT=asan CFLAGS="-O1 -g" check

## lint: clang-tidy, cppcheck, shellcheck, both compilers
lint: lint-clang lint-tidy lint-cppcheck lint-shell headers

lint-clang:
	$(Q)$(MAKE) --no-print-directory VARIANT=clang CC=clang $(BUILD)/clang/kbisect

lint-tidy:
	$(Q)clang-tidy --quiet $(LIB_SRC) harness/main.c -- -std=gnu17 -D_GNU_SOURCE -I. \
		$(PKG_CFLAGS)

lint-cppcheck:
	$(Q)cppcheck --quiet --std=c11 --enable=warning,performance,portability --inline-suppr \
		--suppress=memleak --suppress=resourceLeak --error-exitcode=1 -I. \
		-D_GNU_SOURCE -D__GNUC__ harness bisect results guest-init

lint-shell:
	$(Q)shellcheck -x -S warning $(wildcard scripts/*.sh images/*.sh tests/*.sh tests/*/*.sh \
		tests/*/*.t) .ci/run

## headers: every header compiles alone
headers:
	$(Q)for h in harness/*.h harness/base/*.h bisect/*.h results/*.h guest-init/*.h; do \
		echo "#include \"$$h\"" | $(CC) -std=gnu17 -D_GNU_SOURCE -I. $(PKG_CFLAGS) $(WARN) \
			-fsyntax-only -xc - || exit 1; \
	done

FUZZ_SECONDS ?= 30
## fuzz: libFuzzer on everything a guest or a user controls, FUZZ_SECONDS each
fuzz:
	$(Q)mkdir -p $(BUILD)/fuzz
	$(Q)for f in $(FUZZ); do \
		echo "  FUZZ    $$f"; \
		clang -std=gnu17 -D_GNU_SOURCE -I. -O1 -g -fsanitize=fuzzer,address,undefined \
			$(PKG_CFLAGS) -o $(BUILD)/fuzz/$$f tests/fuzz/$$f.c $(LIB_SRC) $(PKG_LIBS) \
			|| exit 1; \
		mkdir -p $(BUILD)/fuzz/corpus-$$f; \
		$(BUILD)/fuzz/$$f -max_total_time=$(FUZZ_SECONDS) -verbosity=0 -max_len=65536 \
			-artifact_prefix=$(BUILD)/fuzz/ $(BUILD)/fuzz/corpus-$$f \
			tests/fuzz/corpus/$${f#fuzz_} || exit 1; \
	done

##@ Benchmarks

$(OUT)/tests/bench/%: $(OUT)/obj/tests/bench/%.o $(LIB)
	@mkdir -p $(@D)
	$(Q)$(CC) $(KB_CFLAGS) -o $@ $^ $(PKG_LIBS)

## bench-choice: time and memory of choosing a commit, beside git rev-list --bisect
bench-choice: $(OUT)/tests/bench/bench_choice
	$<

## bench-engine: the Bayesian engine's choice among 100,000 candidates
bench-engine: $(OUT)/tests/bench/bench_engine
	$<

##@ Other

## docs: regenerate what is generated from the tables
docs: all
	$(Q)$(BUILD)/kbisect job --reference > docs/job-file.md

## install: into PREFIX (default /usr/local)
install: all image
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/share/kbisect/image
	install -m 755 $(BUILD)/kbisect $(BUILD)/kbisect-qemu $(DESTDIR)$(PREFIX)/bin
	install -m 644 $(BUILD)/image/base.cpio $(DESTDIR)$(PREFIX)/share/kbisect/image
	cp -r configs $(DESTDIR)$(PREFIX)/share/kbisect

## clean: remove build products, keep caches, history and state
clean:
	rm -rf $(BUILD)/obj $(BUILD)/asan $(BUILD)/clang $(BUILD)/tests $(BUILD)/guest \
		$(BUILD)/image $(BUILD)/fuzz $(BUILD)/kbisect* $(BUILD)/libkbisect.a

## distclean: remove build/ with all caches, the history and the runs
distclean:
	rm -rf $(BUILD)

.PHONY: help all image setup history demo test-programs check test asan lint lint-clang lint-tidy \
	lint-cppcheck lint-shell headers fuzz docs install clean distclean \
	bench-choice bench-engine

-include $(shell find $(BUILD)/obj $(BUILD)/guest/obj $(OUT)/obj -name '*.d' -type f 2>/dev/null)
