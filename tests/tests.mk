# SPDX-License-Identifier: BSD-2-Clause
# Unit tests: tests/unit/DIRECTORY/test_MODULE.c is one cmocka program, linked with the product's objects that it needs. A
# function that it defines itself stands in for the product's, of another object than the one that calls it.
#
# tests/bpf/host/: bpf/ compiled for user space; those for other machines' registers are left out.
HOST_SRC := $(if $(filter x86,$(BPF_ARCH)),$(wildcard tests/bpf/host/test_*.c),$(wildcard tests/bpf/host/test_*_$(BPF_ARCH).c))
# The host's first: one of them takes longest, and run.sh begins programs in this order.
UNIT_SRC := $(HOST_SRC) $(wildcard tests/unit/*/test_*.c)
# For `make check CHANGED=1`: of these alone.
UNIT_SRC := $(if $(ONLY_UNIT),$(filter $(ONLY_UNIT),$(UNIT_SRC)),$(UNIT_SRC))
UNIT_BIN := $(UNIT_SRC:%.c=$(BUILD)/%)
# What only few are linked with is not loaded by the others.
UNIT_LIBS := -lcmocka -ldw $(LIBS) -Wl,--as-needed $(SERVE_LIBS) $(FETCH_LIBS)
# TEST.linked names the objects that are in it: what tests/changed.py and tests/mutants ask for.
$(UNIT_BIN): %: %.o $(BUILD)/libpyprofd.a
	$(call msg,LINK,$@)$(CC) $(CFLAGS) $(EXTRA_CFLAGS) $(LDFLAGS) -Wl,-z,muldefs,--trace $^ $(UNIT_LIBS) -o $@ > $@.linked
UNIT_OBJ := $(UNIT_BIN:%=%.o)
$(BUILD)/tests/unit/attach/test_kernel_side.o: $(BUILD)/gen/pyprofd.skel.h
# cmocka.h wants these first.
$(BUILD)/tests/unit/%.o: CPPFLAGS += -include stdarg.h -include stddef.h -include setjmp.h -include stdint.h
# As system headers, so that only the tests are warned of; the BPF code reads fields wherever they lie.
$(BUILD)/tests/bpf/host/%.o: CPPFLAGS += -isystem tests/bpf/host/shadow -isystem bpf
$(BUILD)/tests/bpf/host/%.o: EXTRA_CFLAGS += -fno-sanitize=alignment
# What a test does itself is little, but for the host's: with sanitizers its optimization costs more than it saves.
# UNIT_CFLAGS: for tests/mutants.
$(BUILD)/tests/unit/%.o: EXTRA_CFLAGS += $(if $(findstring sanitize,$(CFLAGS)),-O0) $(UNIT_CFLAGS)
# Each holds the whole BPF side: with sanitizers gcc needs 5 s for one at -O1, and 1.6 s at -O0.  The one that runs long stays.
HOST_QUICK := $(filter-out $(BUILD)/tests/bpf/host/test_switch_callers.o,$(HOST_SRC:%.c=$(BUILD)/%.o))
$(HOST_QUICK): EXTRA_CFLAGS += $(if $(findstring sanitize,$(CFLAGS)),-O0)
$(HOST_SRC:%.c=$(BUILD)/%.o): $(wildcard bpf/*.c bpf/lib/*.h tests/bpf/host/shadow/bpf/*.h)

# Programs that do less under sanitizers: `make check` runs these without them, too.
PLAIN_UNIT_BIN := $(patsubst %.c,$(BUILD)/%,$(shell grep -l __SANITIZE_ADDRESS__ $(UNIT_SRC) /dev/null))

.PHONY: unit unit-programs unit-plain-programs unit-asan-programs print-unit-programs print-plain-programs
unit-programs: $(UNIT_BIN)
unit-plain-programs: $(PLAIN_UNIT_BIN)
print-unit-programs: ; @echo $(UNIT_BIN)
print-plain-programs: ; @echo $(PLAIN_UNIT_BIN)
unit: $(UNIT_BIN)
	@tests/unit/run.sh $^
# One directory's: make unit-elf; make unit-host
directory_tests = $(patsubst %.c,$(BUILD)/%,$(filter tests/unit/$(1)/% tests/bpf/$(1)/%,$(UNIT_SRC)))
unit-%:
	@$(if $(call directory_tests,$*),,echo "no unit tests of '$*'; there are those of: $(sort $(foreach t,$(UNIT_SRC),$(word 3,$(subst /, ,$(t)))))" >&2; exit 2)
	@$(MAKE) --no-print-directory $(call directory_tests,$*) && set -e && for t in $(call directory_tests,$*); do $$t; done
unit-asan-programs: $(SKELETON_FILES)
	@$(MAKE) --no-print-directory BUILD=$(BUILD)-asan SKELETONS=$(BUILD)/gen CFLAGS='$(ASAN_CFLAGS)' unit-programs

# Small changes to the product that unit tests must notice: make mutants ARGS='--only diff -n 10'
.PHONY: mutants
mutants: ; @BUILD=$(BUILD) tests/mutants/mutants.py $(ARGS)

# Fuzz targets: tests/fuzz/fuzz_NAME.c, built by clang from the sources that its comment names; seeds
# in tests/fuzz/corpus/NAME/.  make fuzz FUZZ_RUNS=1000000; by time: make fuzz FUZZ_SECONDS=600
FUZZ_RUNS ?= 10000
FUZZ_SECONDS ?= 0
FUZZ_SRC := $(wildcard tests/fuzz/fuzz_*.c)
FUZZ_BIN := $(FUZZ_SRC:tests/fuzz/%.c=$(BUILD)/fuzz/%)
FUZZ_CFLAGS := -O1 -gline-tables-only -fsanitize=address,undefined -fno-sanitize-recover=all -ffunction-sections -fdata-sections -std=gnu17 -MMD -MP
$(BUILD)/fuzz/%.o: %.c
	@mkdir -p $(@D)
	$(call msg,FUZZCC,$@)$(CLANG) $(CPPFLAGS) $(FUZZ_CFLAGS) -fsanitize=fuzzer-no-link -c $< -o $@
# TEST=SOURCE,SOURCE for all of them by one program: by one for each, make began after half a second of CPU time.
SOURCES_OF := $(shell awk '/^\/\* sources: / { sub(/^.* sources: */, ""); sub(/ *\*\/$$/, ""); gsub(" ", ","); print FILENAME "=" $$0; nextfile }' \
	$(FUZZ_SRC))
comma := ,
fuzz_objects = $(patsubst %.c,$(BUILD)/fuzz/userspace/%.o,$(subst $(comma), ,$(patsubst $(1)=%,%,$(filter $(1)=%,$(SOURCES_OF)))))
define fuzz_rule
$(1:tests/fuzz/%.c=$(BUILD)/fuzz/%): $(BUILD)/fuzz/$(1:%.c=%.o) $(call fuzz_objects,$(1))
	$$(call msg,LINK,$$@)$$(CLANG) $$(FUZZ_CFLAGS) -fsanitize=fuzzer -Wl,--gc-sections,-z,start-stop-gc $$^ $$(LIBS) -o $$@
endef
$(LIB_SRC:%.c=$(BUILD)/fuzz/%.o): | $(BUILD)/gen/version.h $(BUILD)/gen/flame_page.h
$(foreach t,$(FUZZ_SRC),$(eval $(call fuzz_rule,$(t))))

# Pushes as pyprofd-serve does, for tests of that alone.
PUSH_MAIN := $(BUILD)/tests/e2e/push_main
$(PUSH_MAIN): $(PUSH_MAIN).o $(BUILD)/libpyprofd.a
	$(call msg,LINK,$@)$(CC) $(CFLAGS) $(EXTRA_CFLAGS) $(LDFLAGS) $^ $(SERVE_LIBS) -o $@
# Static libraries may be missing: what needs them is skipped then.
e2e-programs: $(PUSH_MAIN) fakes
	@$(MAKE) -s --no-print-directory gpu-programs || echo '# no programs that ask a GPU'

# Libraries that stand for CUDA's, on machines without a GPU: make fakes
include tests/fakes/fakes.mk

# What is run on a machine with a GPU: make gpu-bundle
include tests/gpu/gpu.mk

.PHONY: fuzz fuzz-programs e2e e2e-programs bench bench-reader soak
fuzz-programs: $(FUZZ_BIN)
fuzz: $(FUZZ_BIN)
	@tests/fuzz/run.sh $(BUILD)/fuzz $(FUZZ_RUNS) $(FUZZ_SECONDS) $^
e2e: all e2e-programs
	@PYPROFD=$(BUILD)/pyprofd tests/e2e/run.py $(ARGS)
# Attacks by programs of an unprivileged user: make hostile; make hostile ARGS='-k fde -v'
.PHONY: hostile
hostile: all
	@PYPROFD=$(abspath $(BUILD)/pyprofd) tests/hostile/run.py $(ARGS)
# Calls that fail, one a run: make faults; make faults ARGS='--points 10 bpf'
.PHONY: faults
faults: all
	@PYPROFD=$(abspath $(BUILD)/pyprofd) tests/hostile/faults.py $(ARGS)
bench: all
	@PYPROFD=$(abspath $(BUILD)/pyprofd) tests/bench/run.py $(ARGS)

# What stays of pyprofd when it stays on: half an hour, on a machine that does nothing else.
soak: all
	@PYPROFD=$(abspath $(BUILD)/pyprofd) tests/soak/run.py $(ARGS)

# The flame graph's page, and that of pyprofd-serve, in a browser: make web
WEB_PAGE := $(BUILD)/tests/web/page
$(WEB_PAGE): $(BUILD)/tests/web/page.o $(BUILD)/libpyprofd.a
	$(call msg,LINK,$@)$(CC) $(CFLAGS) $(EXTRA_CFLAGS) $(LDFLAGS) $^ $(LIBS) -o $@
.PHONY: web web-page
web-page: $(WEB_PAGE)
web: $(WEB_PAGE) $(BUILD)/pyprofd $(BUILD)/pyprofd-serve
	@PYPROFD=$(abspath $(BUILD)/pyprofd) PAGE=$(abspath $(WEB_PAGE)) SERVE=$(abspath $(BUILD)/pyprofd-serve) VENV=$(abspath $(BUILD))/web-venv tests/web/run.py $(ARGS)

# The bench's section `reader` on 3,600 windows that are made of those that SOURCES names.
bench-reader: all
	@[ -d $(BUILD)/bench-windows ] || tests/bench/reader_windows.py $(BUILD)/bench-windows 3600 $(SOURCES)
	@tests/bench/reader.py $(BUILD)/bench-windows $(BUILD)/pyprof
