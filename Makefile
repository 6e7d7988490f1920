# SPDX-License-Identifier: BSD-2-Clause
# pyprofd: one non-recursive Makefile.  `make help` lists the targets.
BUILD ?= build
V ?= 0
CC ?= gcc
prefix ?= /usr/local
VERSION := 0.1.0
.DEFAULT_GOAL := all

include tests/deps.mk

# The newest clang there is; the first bpftool that answers (Ubuntu's is a wrapper that can fail).
CLANG ?= $(firstword $(foreach c,clang-19 clang-18 clang-17 clang-16 clang-15 clang-14 clang,$(shell command -v $(c))))
BPFTOOL ?= $(firstword $(foreach t,$(shell command -v bpftool) /usr/sbin/bpftool $(wildcard /usr/lib/linux-tools*/*/bpftool),$(shell $(t) version >/dev/null 2>&1 && echo $(t))))
TRIPLET := $(shell $(CC) -dumpmachine 2>/dev/null)
BPF_ARCH := $(if $(filter aarch64%,$(TRIPLET)),arm64,x86)
# Where asm/types.h lies: Debian's place for this machine, or the cross compiler's.
ASM_INCLUDES := $(addprefix -I,$(wildcard /usr/include/$(shell $(CC) -print-multiarch 2>/dev/null)/ /usr/$(TRIPLET)/include/))

WARNINGS := -Wall -Wextra -Wshadow -Wformat=2 -Wstrict-prototypes -Wmissing-prototypes -Wvla \
	-Wundef -Wwrite-strings -Wimplicit-fallthrough $(if $(CI),-Werror)
CPPFLAGS += -D_GNU_SOURCE -Iinclude -Iuserspace -I$(BUILD)/gen -DHASH_NONFATAL_OOM=1
CFLAGS ?= -O2 -g
ASAN_CFLAGS := -O1 -g1 -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
# Against our own mistakes with hostile bytes: tests/lint/check_hardening.sh reads what comes of it.  Not beside sanitizers,
# which do not see what the checked string functions do; and those want an optimizer, and level 3 gcc 12 and glibc 2.34.
IS_SANITIZED := $(findstring -fsanitize=,$(CFLAGS) $(EXTRA_CFLAGS))
FORTIFY_LEVEL := $(shell $(CC) -Werror -O2 -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3 -include stdlib.h -x c -E /dev/null >/dev/null 2>&1 && echo 3 || echo 2)
FORTIFY := $(if $(filter-out -O0,$(filter -O%,$(CFLAGS))),-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=$(FORTIFY_LEVEL))
BRANCH_CFLAGS := $(if $(filter aarch64%,$(TRIPLET)),-mbranch-protection=standard,$(if $(filter x86_64% i%86-%,$(TRIPLET)),-fcf-protection=full))
HARDENING := $(if $(IS_SANITIZED),,-fPIE -fstack-protector-strong -fstack-clash-protection $(BRANCH_CFLAGS) $(FORTIFY))
HARDENING_LDFLAGS := $(if $(IS_SANITIZED),,-pie -Wl,-z,relro,-z,now -Wl,-z,noexecstack)
# What was compiled with other flags is compiled again.
FLAGS := $(strip $(CPPFLAGS) $(HARDENING) $(CFLAGS) $(EXTRA_CFLAGS))
ifneq ($(file <$(BUILD)/flags),$(FLAGS))
$(shell mkdir -p $(BUILD))$(file >$(BUILD)/flags,$(FLAGS))
endif
ALL_CFLAGS = -std=gnu17 $(WARNINGS) $(HARDENING) $(CFLAGS) $(EXTRA_CFLAGS) -MMD -MP
LIBS := -lbpf -ldw -lelf -lz -llzma -liberty -linih -lm -lpthread
READER_LIBS := -lz -lm
FETCH_LIBS := $(READER_LIBS) -linih -lgnutls -lcurl -ljansson -lpthread
SERVE_LIBS := $(READER_LIBS) -linih -lmicrohttpd -lgnutls -lcurl -ljansson -lpthread
BPF_CFLAGS := -g -O2 -target bpf -mcpu=v3 -std=gnu17 -D__TARGET_ARCH_$(BPF_ARCH) -Iinclude -Ibpf \
	$(ASM_INCLUDES) -Wall -Wextra -Wshadow -Wno-unused-parameter -Wno-gnu-variable-sized-type-not-at-end \
	$(if $(CI),-Werror) $(EXTRA_BPF_CFLAGS) -MMD -MP

msg = $(if $(filter 1,$(V)),,@printf '  %-8s %s\n' "$(1)" "$(patsubst $(BUILD)/%,%,$(2))";)
.DELETE_ON_ERROR:
.SUFFIXES:
.PHONY: all
all: $(BUILD)/pyprofd $(BUILD)/pyprof $(BUILD)/pyprofd-serve $(BUILD)/pyprof-fetch
	@:

# Sources by directory; the order of the data path is in tests/lint/check_layers.awk.
MAIN_SRC := userspace/agent/main.c userspace/reader/main.c userspace/serve/main.c userspace/collectors/main.c
LIB_SRC := $(filter-out $(MAIN_SRC),$(wildcard userspace/*/*.c))
LIB_OBJ := $(LIB_SRC:%.c=$(BUILD)/%.o)
# A source whose programs are one object of their own: bpf/own/NAME.bpf.c becomes pyprofd_NAME.skel.h.
BPF_OWN_NAMES := $(patsubst bpf/own/%.bpf.c,pyprofd_%,$(wildcard bpf/own/*.bpf.c))
SKELETON_NAMES := $(BPF_OWN_NAMES) pyprofd pyprofd_probe pyprofd_calls pyprofd_cuda
SKELETON_FILES := $(SKELETON_NAMES:%=$(BUILD)/gen/%.skel.h)
GEN := $(SKELETON_FILES) $(BUILD)/gen/version.h

# maps.bpf.o first: with bpftool 7.1/libbpf 1.1 an extern-only object in front of it leaves map
# offsets 0 ("map relo failed to find map").
BPF_OWN_SRC := bpf/probe.bpf.c bpf/alloc.bpf.c bpf/calls.bpf.c bpf/lines.bpf.c bpf/cuda.bpf.c
BPF_SRC := bpf/maps.bpf.c $(filter-out bpf/maps.bpf.c $(BPF_OWN_SRC),$(wildcard bpf/*.bpf.c))
BPF_OBJ := $(BPF_SRC:%.c=$(BUILD)/%.o)

$(BUILD)/bpf/%.o: bpf/%.c Makefile
	@mkdir -p $(@D)
	$(call msg,BPF,$@)$(CLANG) $(BPF_CFLAGS) -c $< -o $@
$(BUILD)/pyprofd.bpf.o: $(BPF_OBJ) Makefile
	$(call msg,BPFLINK,$@)$(BPFTOOL) gen object $@ $(BPF_OBJ)
# Objects that share the first one's maps and are loaded when they are needed: attach/kernel_side.h.
BPF_SHARED_OBJ := $(BUILD)/bpf/maps.bpf.o $(BUILD)/bpf/walk.bpf.o
$(BUILD)/pyprofd_probe.bpf.o: $(BPF_SHARED_OBJ) $(BUILD)/bpf/probe.bpf.o $(BUILD)/bpf/alloc.bpf.o Makefile
	$(call msg,BPFLINK,$@)$(BPFTOOL) gen object $@ $(filter %.bpf.o,$^)
$(BPF_OWN_NAMES:%=$(BUILD)/%.bpf.o): $(BUILD)/pyprofd_%.bpf.o: $(BPF_SHARED_OBJ) $(BUILD)/bpf/own/%.bpf.o Makefile
	$(call msg,BPFLINK,$@)$(BPFTOOL) gen object $@ $(filter %.bpf.o,$^)
$(BUILD)/pyprofd_calls.bpf.o: $(BPF_SHARED_OBJ) $(BUILD)/bpf/calls.bpf.o $(BUILD)/bpf/lines.bpf.o Makefile
	$(call msg,BPFLINK,$@)$(BPFTOOL) gen object $@ $(filter %.bpf.o,$^)
$(BUILD)/pyprofd_cuda.bpf.o: $(BPF_SHARED_OBJ) $(BUILD)/bpf/cuda.bpf.o Makefile
	$(call msg,BPFLINK,$@)$(BPFTOOL) gen object $@ $(filter %.bpf.o,$^)
# SKELETONS: where another build for this machine has them; the BPF side has no flags of the C compiler's.
$(BUILD)/gen/%.skel.h: $(if $(SKELETONS),$(SKELETONS)/%.skel.h,$(BUILD)/%.bpf.o)
	@mkdir -p $(@D)
	$(call msg,SKEL,$@)$(if $(SKELETONS),cp $< $@,$(BPFTOOL) gen skeleton $< name $* > $@)
$(BUILD)/gen/version.h: Makefile
	@mkdir -p $(@D)
	@echo '#define PYPROFD_VERSION "$(VERSION)"' > $@

# The page of the flame graph, built in as strings.
WEB := userspace/render/web
GEN += $(BUILD)/gen/flame_page.h
$(BUILD)/gen/flame_page.h: $(wildcard $(WEB)/*)
	@mkdir -p $(@D)
	$(call msg,BUNDLE,$@)awk -f $(WEB)/bundle.awk -v directory=$(WEB) > $@
$(BUILD)/userspace/render/flame_html.o: $(BUILD)/gen/flame_page.h
# That of pyprofd-serve, which has some of the first one's files.
SERVE_WEB := userspace/serve/web
GEN += $(BUILD)/gen/serve_page.h
$(BUILD)/gen/serve_page.h: $(wildcard $(WEB)/* $(SERVE_WEB)/*)
	@mkdir -p $(@D)
	$(call msg,BUNDLE,$@)awk -f $(WEB)/bundle.awk -v directory=$(SERVE_WEB) -v shared=$(WEB) > $@
$(BUILD)/userspace/serve/files.o: $(BUILD)/gen/serve_page.h

# A pattern rule without a recipe would add no prerequisite: name the objects.
$(filter $(BUILD)/userspace/attach/%,$(LIB_OBJ)): $(SKELETON_FILES)
# What of it they see, the compiler tells the next time.
$(filter $(BUILD)/userspace/agent/%,$(LIB_OBJ)): | $(BPF_OWN_NAMES:%=$(BUILD)/gen/%.skel.h)
$(filter $(BUILD)/userspace/agent/% $(BUILD)/userspace/windows/% $(BUILD)/userspace/doctor/% $(BUILD)/userspace/options/% $(BUILD)/userspace/query/% $(BUILD)/userspace/collectors/% $(BUILD)/userspace/serve/%,$(LIB_OBJ)) $(MAIN_SRC:%.c=$(BUILD)/%.o): $(BUILD)/gen/version.h
$(BUILD)/%.o: %.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(call msg,CC,$@)$(CC) $(CPPFLAGS) $(ALL_CFLAGS) -c $< -o $@
$(BUILD)/libpyprofd.a: $(LIB_OBJ)
	$(call msg,AR,$@)rm -f $@; $(AR) rcsT $@ $^
$(BUILD)/pyprofd: $(BUILD)/userspace/agent/main.o $(BUILD)/libpyprofd.a
	$(call msg,LINK,$@)$(CC) $(CFLAGS) $(EXTRA_CFLAGS) $(HARDENING_LDFLAGS) $(LDFLAGS) $^ $(LIBS) -o $@
# No BPF, no ELF: what they show is in the profile.
$(BUILD)/pyprof: $(BUILD)/userspace/reader/main.o $(BUILD)/libpyprofd.a
	$(call msg,LINK,$@)$(CC) $(CFLAGS) $(EXTRA_CFLAGS) $(HARDENING_LDFLAGS) $(LDFLAGS) $^ $(READER_LIBS) -o $@
$(BUILD)/pyprofd-serve: $(BUILD)/userspace/serve/main.o $(BUILD)/libpyprofd.a
	$(call msg,LINK,$@)$(CC) $(CFLAGS) $(EXTRA_CFLAGS) $(HARDENING_LDFLAGS) $(LDFLAGS) $^ $(SERVE_LIBS) -o $@

$(BUILD)/pyprof-fetch: $(BUILD)/userspace/collectors/main.o $(BUILD)/libpyprofd.a
	$(call msg,LINK,$@)$(CC) $(CFLAGS) $(EXTRA_CFLAGS) $(HARDENING_LDFLAGS) $(LDFLAGS) $^ $(FETCH_LIBS) -o $@

.PHONY: print-clang help run check check-long check-service install uninstall asan format format-check tidy cross
help:
	@echo 'make                build pyprofd, pyprof, pyprofd-serve and pyprof-fetch in $(BUILD)'
	@echo 'make run            install what is missing, build, profile until Ctrl-C, with a page at the address it prints (as root; ARGS=...)'
	@echo 'make check          install what the tests need, build, run every test (as root); CHANGED=1: those of what has changed'
	@echo 'make check-STEP     one step of it: layers lint unit asan fuzz cross web hostile e2e cases kernels'
	@echo 'make check-long     all of check and what it leaves out (all attacks, too), then unit tests without sanitizers, faults, 10 minutes of probes in preemptible guests, 200 kills, fuzzing, mutants, check-service'
	@echo 'make web            the pages in Chromium (ARGS=--shots DIRECTORY keeps pictures)'
	@echo 'make unit-DIRECTORY    the unit tests of userspace/DIRECTORY'
	@echo 'make hostile        attacks by an unprivileged user (ARGS=-k REGEX); a minute of them is in check'
	@echo 'make faults         calls that fail, each place of each in turn (ARGS=--points N): never a crash or a silent end'
	@echo 'make fakes          stand-ins of the CUDA libraries, for tests, in $(BUILD)/tests/fakes'
	@echo 'make gpu-bundle     $(GPU_BUNDLE): what to run on a machine with a GPU, to ask it what no other can tell'
	@echo 'make soak           half an hour beside 200 programs a second: nothing grows; 100 kills lose a window each'
	@echo 'make mutants        small changes to the product: do the unit tests notice? (ARGS=--only AREA -n COUNT)'
	@echo 'make check-service  the systemd unit and sudo in a guest with systemd (ARGS=SERIES of Linux)'
	@echo 'make bench          cost beside other profilers, as ratios of one run'
	@echo 'make deps           install what the build needs; test-deps: and the tests; deps-check: tell'
	@echo 'make install        to prefix=$(prefix), below DESTDIR; make uninstall'
	@echo 'make sbom           $(BUILD)/pyprofd.spdx.json: what the programs are made of, in SPDX 2.3'
	@echo 'make asan           the agent with address and undefined sanitizers, in $(BUILD)-asan'
	@echo 'make cross          compile for aarch64 with the cross compiler'
	@echo 'make format         clang-format-19; format-check: tell; tidy: clang-tidy-19'
	@echo 'Variables: BUILD CC CLANG BPFTOOL CFLAGS prefix DESTDIR V=1 (show commands) CI=1 (-Werror)'

# The build is another make: what `deps` installs is looked for when make starts.
run: deps
	@$(MAKE) --no-print-directory all
	@BUILD=$(BUILD) deploy/run.sh $(ARGS)
check: test-deps
	@BUILD=$(BUILD) tests/check.sh
# What takes long: before a release.  One part that fails does not hide what the others find.
check-long: test-deps
	@failed=; CHECK_LONG=1 BUILD=$(BUILD) tests/check.sh || failed="$$failed check"; \
	$(MAKE) --no-print-directory faults || failed="$$failed faults"; \
	$(MAKE) --no-print-directory unit || failed="$$failed unit"; \
	$(MAKE) --no-print-directory fuzz FUZZ_SECONDS=60 || failed="$$failed fuzz"; \
	$(MAKE) --no-print-directory mutants || failed="$$failed mutants"; \
	BUILD=$(BUILD) tests/targets.sh || failed="$$failed targets"; \
	BUILD=$(BUILD) tests/service/run.sh || failed="$$failed service"; \
	BUILD=$(BUILD) tests/kernel-matrix/run.sh --soak 600 6.18 7.2 || failed="$$failed soak-of-probes"; \
	KILLS=200 BUILD=$(BUILD) tests/e2e/run.py -k hostile_output.killed_at_any_moment || failed="$$failed kills"; \
	KILLS=100 BUILD=$(BUILD) tests/e2e/run.py -k cuda_kills || failed="$$failed cuda-kills"; \
	[ -z "$$failed" ] || { echo "check-long, failed:$$failed"; exit 1; }
# Minutes, and a Debian out of packages: not part of `check`.
check-service: all
	@BUILD=$(BUILD) tests/service/run.sh $(ARGS)
check-%: ; @BUILD=$(BUILD) tests/check.sh $*

bindir := $(DESTDIR)$(prefix)/bin
mandir := $(DESTDIR)$(prefix)/share/man/man1
unitdir := $(DESTDIR)$(prefix)/lib/systemd/system
bashdir := $(DESTDIR)$(prefix)/share/bash-completion/completions
zshdir := $(DESTDIR)$(prefix)/share/zsh/site-functions
usersdir := $(DESTDIR)$(prefix)/lib/sysusers.d
confdir := $(DESTDIR)/etc/pyprofd
docdir := $(DESTDIR)$(prefix)/share/doc/pyprofd
install: all
	install -D -m 0755 $(BUILD)/pyprofd $(bindir)/pyprofd
	install -D -m 0755 $(BUILD)/pyprof $(bindir)/pyprof
	install -D -m 0755 $(BUILD)/pyprofd-serve $(bindir)/pyprofd-serve
	install -D -m 0755 $(BUILD)/pyprof-fetch $(bindir)/pyprof-fetch
	install -D -m 0644 deploy/completion/pyprof.bash $(bashdir)/pyprof
	install -D -m 0644 deploy/completion/_pyprof $(zshdir)/_pyprof
	install -D -m 0644 -t $(mandir) docs/man/pyprofd.1 docs/man/pyprof.1 docs/man/pyprofd-serve.1
	sed 's|/usr/local/bin|$(prefix)/bin|' deploy/systemd/pyprofd.service > $(BUILD)/pyprofd.service
	install -D -m 0644 $(BUILD)/pyprofd.service $(unitdir)/pyprofd.service
	sed 's|/usr/local/bin|$(prefix)/bin|' deploy/systemd/pyprofd-serve.service > $(BUILD)/pyprofd-serve.service
	install -D -m 0644 $(BUILD)/pyprofd-serve.service $(unitdir)/pyprofd-serve.service
	install -D -m 0644 deploy/systemd/sysusers.conf $(usersdir)/pyprofd.conf
	test -e $(confdir)/pyprofd.conf || install -D -m 0644 deploy/pyprofd.conf $(confdir)/pyprofd.conf
	install -D -m 0644 -t $(docdir) LICENSE LICENSES/GPL-2.0-only.txt README.md CHANGELOG.md
	install -D -m 0644 -t $(docdir)/examples deploy/examples/*.conf deploy/systemd/pyprofd-gpu.conf deploy/grafana/pyprofd.json deploy/prometheus/pyprofd.rules.yml
# What the programs are made of, by the Debian packages of this machine.
.PHONY: sbom
sbom: all
	@deploy/sbom.py $(VERSION) $(BUILD)/pyprofd $(BUILD)/pyprof $(BUILD)/pyprofd-serve $(BUILD)/pyprof-fetch --build $(call quoted,$(DEPS_BUILD)) > $(BUILD)/sbom.$$$$ && \
		mv $(BUILD)/sbom.$$$$ $(BUILD)/pyprofd.spdx.json
	@echo '$(BUILD)/pyprofd.spdx.json'
uninstall:
	rm -f $(bindir)/pyprofd $(bindir)/pyprof $(mandir)/pyprofd.1 $(mandir)/pyprof.1 $(unitdir)/pyprofd.service
	rm -f $(bindir)/pyprofd-serve $(bindir)/pyprof-fetch $(mandir)/pyprofd-serve.1 $(unitdir)/pyprofd-serve.service
	rm -f $(bashdir)/pyprof $(zshdir)/_pyprof $(usersdir)/pyprofd.conf
	rm -rf $(docdir)
	if cmp -s deploy/pyprofd.conf $(confdir)/pyprofd.conf; then rm -f $(confdir)/pyprofd.conf; fi

asan: $(SKELETON_FILES)
	@$(MAKE) --no-print-directory BUILD=$(BUILD)-asan SKELETONS=$(BUILD)/gen CFLAGS='$(ASAN_CFLAGS)' all
CROSS_CFLAGS ?= -O2 -g
cross:
	@$(MAKE) --no-print-directory BUILD=$(BUILD)-aarch64 CC=aarch64-linux-gnu-gcc \
		CFLAGS='$(CROSS_CFLAGS) -idirafter /usr/include -idirafter /usr/include/$(shell gcc -print-multiarch)' cross-objects
# No arm64 libraries are needed to compile; the headers of the host's serve.
.PHONY: cross-objects
cross-objects: $(SKELETON_NAMES:%=$(BUILD)/%.bpf.o) $(LIB_OBJ) $(MAIN_SRC:%.c=$(BUILD)/%.o)

print-clang: ; @echo $(CLANG)

C_FILES = $(wildcard bpf/*.[ch] bpf/own/*.c bpf/lib/*.h include/pyprofd/*.h userspace/*/*.[ch] tests/unit/*/*.[ch] tests/fuzz/*.c tests/web/*.c tests/fakes/*.[ch] tests/gpu/*.[ch] tests/example_source/*/*/*.c)
# A header's language is told: of some clang-format takes it for Objective-C.
formatted = clang-format-19 --assume-filename=$$(echo $$f | sed 's/\.h$$/.hpp/') < $$f
format: ; @for f in $(C_FILES); do $(formatted) > $(BUILD)/formatted && { cmp -s $(BUILD)/formatted $$f || cp $(BUILD)/formatted $$f; } || exit 1; done
format-check: ; @other=; for f in $(C_FILES); do $(formatted) | cmp -s - $$f || other="$$other $$f"; done; \
	[ -z "$$other" ] || { echo "not as clang-format-19 has them:$$other" >&2; exit 1; }
tidy: $(GEN) ; clang-tidy-19 --quiet $(wildcard userspace/*/*.c) -- -std=gnu17 $(CPPFLAGS)

include tests/tests.mk

-include $(shell find $(BUILD)/bpf $(BUILD)/gen $(BUILD)/userspace $(BUILD)/tests $(BUILD)/fuzz -name '*.d' -type f 2>/dev/null)
