# SPDX-License-Identifier: BSD-2-Clause
# Unit tests: tests/unit/FOLDER/test_MODULE.c is one cmocka program, linked with the sources that its
# first comment line `/* sources: elf/elf_image.c base/io.c */` names, and with nothing else.
UNIT_SRC := $(wildcard tests/unit/*/test_*.c)
UNIT_BIN := $(UNIT_SRC:%.c=$(BUILD)/%)
UNIT_LIBS := -lcmocka $(LIBS)
# gen/profile.pb-c.c is one of the generated sources.
unit_sources = $(patsubst $(BUILD)/userspace/gen/%,$(BUILD)/gen/%,$(patsubst %.c,$(BUILD)/userspace/%.o,$(shell sed -n 's|^/\* sources: \(.*\) \*/$$|\1|p' $(1))))

define unit_rule
$(BUILD)/$(1:%.c=%): $(BUILD)/$(1:%.c=%.o) $(call unit_sources,$(1))
	$$(call msg,LINK,$$@)$$(CC) $$(CFLAGS) $$(EXTRA_CFLAGS) $$^ $$(UNIT_LIBS) -o $$@
endef
$(foreach t,$(UNIT_SRC),$(eval $(call unit_rule,$(t))))
$(filter $(BUILD)/tests/unit/profile/%,$(UNIT_BIN:%=%.o)): $(BUILD)/gen/profile.pb-c.h
# cmocka.h wants these first.
$(BUILD)/tests/unit/%.o: CPPFLAGS += -include stdarg.h -include stddef.h -include setjmp.h -include stdint.h

.PHONY: unit
unit: $(UNIT_BIN)
	@set -e; for t in $^; do $$t; done
# One folder's: make unit-elf
unit-%: ; @$(MAKE) --no-print-directory $(patsubst %.c,$(BUILD)/%,$(wildcard tests/unit/$*/test_*.c)) && set -e && for t in $(patsubst %.c,$(BUILD)/%,$(wildcard tests/unit/$*/test_*.c)); do $$t; done
