# SPDX-License-Identifier: BSD-2-Clause
# pyprofd: one non-recursive Makefile.  `make help` lists the targets.
BUILD ?= build
V ?= 0
CC ?= gcc
prefix ?= /usr/local
VERSION := 0.1.0

include tests/deps.mk

# The newest clang there is; the first bpftool that answers (Ubuntu's is a wrapper that can fail).
CLANG ?= $(firstword $(foreach c,clang-19 clang-18 clang-17 clang-16 clang-15 clang-14 clang,$(shell command -v $(c))))
BPFTOOL ?= $(firstword $(foreach t,$(shell command -v bpftool) /usr/sbin/bpftool $(wildcard /usr/lib/linux-tools*/*/bpftool),$(shell $(t) version >/dev/null 2>&1 && echo $(t))))
ARCH := $(shell $(CC) -dumpmachine | sed 's/-.*//')
BPF_ARCH := $(if $(filter aarch64,$(ARCH)),arm64,x86)
MULTIARCH := $(shell $(CC) -print-multiarch)

WARNINGS := -Wall -Wextra -Wshadow -Wformat=2 -Wstrict-prototypes -Wmissing-prototypes -Wvla \
	-Wundef -Wwrite-strings -Wimplicit-fallthrough $(if $(CI),-Werror)
CPPFLAGS += -D_GNU_SOURCE -Iinclude -Iuserspace -I$(BUILD)/gen -DHASH_NONFATAL_OOM=1
CFLAGS ?= -O2 -g
ALL_CFLAGS = -std=gnu17 $(WARNINGS) $(CFLAGS) $(EXTRA_CFLAGS) -MMD -MP
LIBS := -lbpf -ldw -lelf -lz -llzma -lprotobuf-c -lm
BPF_CFLAGS := -g -O2 -target bpf -mcpu=v3 -std=gnu17 -D__TARGET_ARCH_$(BPF_ARCH) -Iinclude -Ibpf \
	$(if $(MULTIARCH),-I/usr/include/$(MULTIARCH)) -Wall -Wextra -Wshadow -Wno-unused-parameter -Wno-gnu-variable-sized-type-not-at-end \
	$(if $(CI),-Werror) -MMD -MP

msg = $(if $(filter 1,$(V)),,@printf '  %-8s %s\n' "$(1)" "$(patsubst $(BUILD)/%,%,$(2))";)
.DELETE_ON_ERROR:
.SUFFIXES:
.PHONY: all
all: $(BUILD)/pyprofd

# Sources by folder; the order of the data path is in tests/lint/check_layers.awk.
LIB_SRC := $(filter-out userspace/agent/main.c,$(wildcard userspace/*/*.c))
LIB_OBJ := $(LIB_SRC:%.c=$(BUILD)/%.o)
GEN := $(BUILD)/gen/pyprofd.skel.h $(BUILD)/gen/profile.pb-c.h $(BUILD)/gen/version.h

# maps.bpf.o first: with bpftool 7.1/libbpf 1.1 an extern-only object in front of it leaves map
# offsets 0 ("map relo failed to find map").
BPF_SRC := bpf/maps.bpf.c $(filter-out bpf/maps.bpf.c,$(wildcard bpf/*.bpf.c))
BPF_OBJ := $(BPF_SRC:%.c=$(BUILD)/%.o)

$(BUILD)/bpf/%.o: bpf/%.c Makefile
	@mkdir -p $(@D)
	$(call msg,BPF,$@)$(CLANG) $(BPF_CFLAGS) -c $< -o $@
$(BUILD)/pyprofd.bpf.o: $(BPF_OBJ) Makefile
	$(call msg,BPFLINK,$@)$(BPFTOOL) gen object $@ $(BPF_OBJ)
$(BUILD)/gen/pyprofd.skel.h: $(BUILD)/pyprofd.bpf.o
	@mkdir -p $(@D)
	$(call msg,SKEL,$@)$(BPFTOOL) gen skeleton $< name pyprofd > $@
$(BUILD)/gen/profile.pb-c.h: include/proto/profile.proto
	@mkdir -p $(@D)
	$(call msg,PROTOC,$@)protoc-c --proto_path=include/proto --c_out=$(@D) $<
$(BUILD)/gen/profile.pb-c.c: $(BUILD)/gen/profile.pb-c.h ;
$(BUILD)/gen/version.h: Makefile
	@mkdir -p $(@D)
	@echo '#define PYPROFD_VERSION "$(VERSION)"' > $@

$(BUILD)/gen/%.o: $(BUILD)/gen/%.c
	$(call msg,CC,$@)$(CC) -O2 -g -c $< -o $@
# A pattern rule without a recipe would add no prerequisite: name the objects.
$(filter $(BUILD)/userspace/attach/%,$(LIB_OBJ)): $(BUILD)/gen/pyprofd.skel.h
$(filter $(BUILD)/userspace/profile/%,$(LIB_OBJ)): $(BUILD)/gen/profile.pb-c.h
$(filter $(BUILD)/userspace/agent/%,$(LIB_OBJ)) $(BUILD)/userspace/agent/main.o: $(BUILD)/gen/version.h
$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	$(call msg,CC,$@)$(CC) $(CPPFLAGS) $(ALL_CFLAGS) -c $< -o $@
$(BUILD)/libpyprofd.a: $(LIB_OBJ) $(BUILD)/gen/profile.pb-c.o
	$(call msg,AR,$@)rm -f $@; $(AR) rcs $@ $^
$(BUILD)/pyprofd: $(BUILD)/userspace/agent/main.o $(BUILD)/libpyprofd.a
	$(call msg,LINK,$@)$(CC) $(CFLAGS) $(EXTRA_CFLAGS) $^ $(LIBS) -o $@

include tests/tests.mk

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
