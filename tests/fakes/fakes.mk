# SPDX-License-Identifier: BSD-2-Clause
# Stand-ins of CUDA's libraries (tests/fakes/README.md), in $(BUILD)/tests/fakes
FAKES := $(BUILD)/tests/fakes
FAKES_X86 := $(filter x86_64%,$(TRIPLET))
# Each function begins with its frame: nothing before it, and no jumps instead.
FAKES_FRAMES := -fno-omit-frame-pointer -fno-shrink-wrap -fno-schedule-insns2 -fno-optimize-sibling-calls
FAKES_FLAGS_base := $(FAKES_FRAMES) $(if $(FAKES_X86),-fcf-protection=none)
# Not the product's CFLAGS: what a test finds in these files is to be the same in every build.
FAKES_CFLAGS := -std=gnu17 $(WARNINGS) -D_GNU_SOURCE -O2 -g -fPIC -U_FORTIFY_SOURCE -fno-stack-protector -fno-tree-slp-vectorize -MMD -MP
FAKES_LDFLAGS := -shared -Wl,-Bsymbolic -Wl,--build-id -Wl,--no-undefined '-Wl,-rpath,$$ORIGIN'
FAKES_DRIVER := $(basename $(notdir $(wildcard tests/fakes/driver_*.c))) truth

# $(call fakes_objects,VARIANT,MAJOR,NAMES)
fakes_objects = $(3:%=$(FAKES)/obj/$(1)/$(2)/%.o)
define fakes_variant
$(FAKES)/obj/$(1)/$(2)/%.o: tests/fakes/%.c tests/fakes/fakes.mk
	@mkdir -p $$(@D)
	$$(call msg,CC,$$@)$$(CC) $$(FAKES_CFLAGS) $$(FAKES_FLAGS_$(1)) -DCUDART_MAJOR=$(2) -c $$< -o $$@
endef
$(eval $(call fakes_variant,base,13))

# $(call fakes_library,FILE,SONAME,EXPORTED,VERSION NODE,OBJECTS,LIBRARIES)
define fakes_library
$(1): $(5) $(6)
	@mkdir -p $$(@D)
	@echo '$(4) { global: $(3) local: *; };' > $(FAKES)/obj/$$(subst /,_,$$(patsubst $(FAKES)/%,%,$$@)).map
	$$(call msg,LINK,$$@)$$(CC) $$(FAKES_LDFLAGS) $(2:%=-Wl,-soname,%) \
		-Wl,--version-script,$(FAKES)/obj/$$(subst /,_,$$(patsubst $(FAKES)/%,%,$$@)).map $$^ -ldl -lpthread -o $$@
FAKES_LIBRARIES += $(1)
endef
fakes_driver = $(call fakes_library,$(1)libcuda.so.1,libcuda.so.1,cu*; fake_cuda_*;,,$(call fakes_objects,$(2),13,$(FAKES_DRIVER)))
$(eval $(call fakes_driver,$(FAKES)/,base))

.PHONY: fakes
fakes: $(FAKES_LIBRARIES)
