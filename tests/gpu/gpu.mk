# SPDX-License-Identifier: BSD-2-Clause
# What asks a machine with a GPU (docs/gpu-results.md), packed for one that has no compiler: make gpu-bundle
#   gpu_check, nvml_check   load the driver's libraries, so they are linked with the C library alone
#   pyprofd                 with the C library alone, too; pyprofd-static where that one is too old
#   the others              are static: the GPU's machine has none of their libraries
GPU := $(BUILD)/tests/gpu
GPU_BUNDLE ?= $(BUILD)/pyprofd-gpu.tar.gz
GPU_PROGRAMS := $(addprefix $(GPU)/,gpu_check nvml_check library_check profile_sums pyprofd pyprofd-static pyprof)
$(GPU)/%.o: CPPFLAGS += -Itests/fakes
# What elfutils' static libraries are linked with, as far as it is there.
GPU_MORE_LIBS = $(foreach lib,bz2 zstd,$(if $(filter /%,$(shell $(CC) -print-file-name=lib$(lib).a)),-l$(lib)))
GPU_STATIC := -static-pie -Wl,-z,relro,-z,now -Wl,-z,noexecstack -Wl,--strip-debug
# The linker warns of functions that would load libraries: names of users and hosts are not asked for there.
gpu_static = $(call msg,LINK,$@)$(CC) $(CFLAGS) $(EXTRA_CFLAGS) $(GPU_STATIC) $(LDFLAGS) $^ $(1) -o $@ 2> $@.log || { cat $@.log; exit 1; }
gpu_dynamic = $(call msg,LINK,$@)$(CC) $(CFLAGS) $(EXTRA_CFLAGS) $(HARDENING_LDFLAGS) -Wl,--strip-debug $(LDFLAGS) $^ $(1) -o $@
$(GPU)/gpu_check: $(patsubst %,$(GPU)/%.o,main driver sites functions calls truth) $(BUILD)/libpyprofd.a
	$(call gpu_dynamic,-ldl)
$(GPU)/nvml_check: $(GPU)/nvml_check.o
	$(call gpu_dynamic,-ldl)
$(GPU)/library_check: $(GPU)/library_check.o $(BUILD)/libpyprofd.a
	$(call gpu_static)
$(GPU)/profile_sums: $(GPU)/profile_sums.o $(BUILD)/libpyprofd.a
	$(call gpu_static,$(READER_LIBS))
$(GPU)/pyprof: $(BUILD)/userspace/reader/main.o $(BUILD)/libpyprofd.a
	$(call gpu_static,$(READER_LIBS))
$(GPU)/pyprofd: $(BUILD)/userspace/agent/main.o $(BUILD)/libpyprofd.a
	$(call gpu_dynamic,-Wl$(comma)-Bstatic $(filter-out -lm -lpthread,$(LIBS)) $(GPU_MORE_LIBS) -Wl$(comma)-Bdynamic -lm -lpthread)
$(GPU)/pyprofd-static: $(BUILD)/userspace/agent/main.o $(BUILD)/libpyprofd.a
	$(call gpu_static,$(LIBS) $(GPU_MORE_LIBS))

# Tests skip what could not be linked, for want of static libraries; what does not compile is a fault.
e2e-programs: $(patsubst tests/gpu/%.c,$(GPU)/%.o,$(wildcard tests/gpu/*.c))

.PHONY: gpu-programs gpu-bundle
gpu-programs: $(GPU_PROGRAMS)
gpu-bundle: gpu-programs
	@BUILD=$(BUILD) tests/gpu/run.sh --make $(GPU_BUNDLE)
