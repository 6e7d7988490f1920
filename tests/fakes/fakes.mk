# SPDX-License-Identifier: BSD-2-Clause
# Stand-ins of CUDA's libraries (tests/fakes/README.md), in $(BUILD)/tests/fakes and, built otherwise, in its directories:
#   endbr/     entries begin with endbr64
#   nofp/      no frame pointers: entries begin with sub or mov
#   stripped/  no .symtab
FAKES := $(BUILD)/tests/fakes
FAKES_X86 := $(filter x86_64%,$(TRIPLET))
# Each function begins with its frame: nothing before it, and no jumps instead.
FAKES_FRAMES := -fno-omit-frame-pointer -fno-shrink-wrap -fno-schedule-insns2 -fno-optimize-sibling-calls
FAKES_FLAGS_base := $(FAKES_FRAMES) $(if $(FAKES_X86),-fcf-protection=none)
FAKES_FLAGS_endbr := $(FAKES_FRAMES) $(if $(FAKES_X86),-fcf-protection=full)
FAKES_FLAGS_nofp := -fomit-frame-pointer -DCUDART_NO_FRAMES $(if $(FAKES_X86),-fcf-protection=none)
# Not the product's CFLAGS: what a test finds in these files is to be the same in every build.
FAKES_CFLAGS := -std=gnu17 $(WARNINGS) -D_GNU_SOURCE -O2 -g -fPIC -U_FORTIFY_SOURCE -fno-stack-protector -fno-tree-slp-vectorize -MMD -MP
FAKES_LDFLAGS := -shared -Wl,-Bsymbolic -Wl,--build-id -Wl,--no-undefined '-Wl,-rpath,$$ORIGIN'
FAKES_DRIVER := $(basename $(notdir $(wildcard tests/fakes/driver_*.c))) truth
FAKES_CUDART := cudart_state cudart_launch cudart_calls cudart_copies

# $(call fakes_objects,VARIANT,MAJOR,NAMES)
fakes_objects = $(3:%=$(FAKES)/obj/$(1)/$(2)/%.o)
define fakes_variant
$(FAKES)/obj/$(1)/$(2)/%.o: tests/fakes/%.c tests/fakes/fakes.mk
	@mkdir -p $$(@D)
	$$(call msg,CC,$$@)$$(CC) $$(FAKES_CFLAGS) $$(FAKES_FLAGS_$(1)) -DCUDART_MAJOR=$(2) $$(FAKES_FLAGS_FOR_$$*) -c $$< -o $$@
endef
# A stub is a caller of its launch, which therefore is no jump.
FAKES_FLAGS_FOR_kernels := -fno-optimize-sibling-calls
FAKES_FLAGS_FOR_blas := -fno-optimize-sibling-calls
$(foreach v,base endbr nofp,$(eval $(call fakes_variant,$(v),13)))
$(eval $(call fakes_variant,base,12))

# $(call fakes_library,FILE,SONAME,EXPORTED,VERSION NODE,OBJECTS,LIBRARIES)
define fakes_library
$(1): $(5) $(6)
	@mkdir -p $$(@D)
	@echo '$(4) { global: $(3) local: *; };' > $(FAKES)/obj/$$(subst /,_,$$(patsubst $(FAKES)/%,%,$$@)).map
	$$(call msg,LINK,$$@)$$(CC) $$(FAKES_LDFLAGS) $$(FAKES_LDFLAGS_FOR_$$(@F)) $(2:%=-Wl,-soname,%) \
		-Wl,--version-script,$(FAKES)/obj/$$(subst /,_,$$(patsubst $(FAKES)/%,%,$$@)).map $$^ -ldl -lpthread -o $$@
FAKES_LIBRARIES += $(1)
endef
# The linker would turn the loads of stubs' addresses out of the GOT, which cu12 builds have, into leas.
FAKES_LDFLAGS_FOR_libfakekernels12.so := -Wl,--no-relax
fakes_driver = $(call fakes_library,$(1)libcuda.so.1,libcuda.so.1,cu*; fake_cuda_*;,,$(call fakes_objects,$(2),13,$(FAKES_DRIVER)))
fakes_cudart = $(call fakes_library,$(1)$(4),$(4),cuda*; __cuda*;,libcudart.so.$(3),$(call fakes_objects,$(2),$(3),$(FAKES_CUDART)))
fakes_kernels = $(call fakes_library,$(1)$(4),$(4),fakekernels_*;,,$(call fakes_objects,$(2),$(3),kernels),$(1)$(5))
$(eval $(call fakes_driver,$(FAKES)/,base))
$(eval $(call fakes_cudart,$(FAKES)/,base,12,libcudart.so.12))
$(eval $(call fakes_cudart,$(FAKES)/,base,13,libcudart.so.13))
$(eval $(call fakes_cudart,$(FAKES)/,base,13,libcudart.abc123.so.13))
$(eval $(call fakes_kernels,$(FAKES)/,base,13,libfakekernels.so,libcudart.so.13))
$(eval $(call fakes_kernels,$(FAKES)/,base,12,libfakekernels12.so,libcudart.so.12))
$(eval $(call fakes_kernels,$(FAKES)/,base,13,libfakekernels.abc123.so,libcudart.abc123.so.13))
$(eval $(call fakes_library,$(FAKES)/libfakeblas.so,libfakeblas.so,fakeblas_*;,,$(call fakes_objects,base,13,blas $(FAKES_CUDART))))
$(eval $(call fakes_library,$(FAKES)/libnccl.so.2,libnccl.so.2,nccl*; fake_nccl_*;,,$(call fakes_objects,base,13,nccl $(FAKES_CUDART))))
$(eval $(call fakes_library,$(FAKES)/libnvidia-ml.so.1,libnvidia-ml.so.1,nvml*; fake_nvml_*;,,$(call fakes_objects,base,13,nvml)))
FAKES_STRIPPED := $(FAKES_LIBRARIES:$(FAKES)/%=$(FAKES)/stripped/%)
$(foreach v,endbr nofp,$(eval $(call fakes_driver,$(FAKES)/$(v)/,$(v)))$(eval \
	$(call fakes_cudart,$(FAKES)/$(v)/,$(v),13,libcudart.so.13))$(eval \
	$(call fakes_kernels,$(FAKES)/$(v)/,$(v),13,libfakekernels.so,libcudart.so.13)))
$(FAKES_STRIPPED): $(FAKES)/stripped/%: $(FAKES)/%
	@mkdir -p $(@D)
	$(call msg,STRIP,$@)strip -o $@ $<
$(FAKES)/launches: $(call fakes_objects,base,13,launches) $(FAKES)/libcuda.so.1
	$(call msg,LINK,$@)$(CC) '-Wl,-rpath,$$ORIGIN' $^ -ldl -lpthread -o $@
.SECONDARY: $(foreach v,base endbr nofp,$(call fakes_objects,$(v),13,$(FAKES_DRIVER) $(FAKES_CUDART) kernels))

.PHONY: fakes
fakes: $(FAKES_LIBRARIES) $(FAKES_STRIPPED) $(FAKES)/launches
