/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: elf/kernel_stubs.c elf/call_constants_x86.c elf/call_constants_arm.c elf/elf_image.c elf/elf_symbol_table.c unwind/cfi.c unwind/cfi_program.c unwind/cfi_go.c unwind/cfi_rule.c elf/x86_decode.c elf/go_table.c elf/debug_file.c base/safe_file.c */
/* An ELF file that registers kernels.  Each stub must lie in its code, each name be one.  The bytes
 * are read as code, too, of either machine. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "elf/call_constants.h"
#include "elf/kernel_stubs.h"
#include "unwind/cfi.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool find_bounds(void *context, uint64_t vaddr, uint64_t *ret_low, uint64_t *ret_high)
{
	struct cfi_range range;

	if (cfi_fde_find(context, vaddr, &range))
		return false;
	*ret_low = range.low;
	*ret_high = range.high;
	return true;
}

static void on_call(void *context, const struct call_value argument[CALL_ARGUMENTS])
{
	(void)context;
	for (size_t i = 0; i < CALL_ARGUMENTS; i++)
		assert(argument[i].kind <= CALL_SLOT);
}

static void on_address(void *context, uint64_t vaddr)
{
	(void)context, (void)vaddr;
}

static void check(const struct elf_image *image, const struct kernel_stubs *stubs)
{
	for (size_t i = 0; i < image->segment_count; i++) {
		const struct elf_segment *segment = &image->segment[i];
		const uint64_t bytes = segment->file_size < 65536 ? segment->file_size : 65536;

		for (uint64_t at = 0; segment->executable && at < bytes; at++) {
			const struct kernel_stub *stub =
				kernel_stubs_find(stubs, segment->vaddr + at);

			if (!stub)
				continue;
			assert(stub->vaddr == segment->vaddr + at);
			assert(stub->name_size && stub->name_size <= KERNEL_STUB_NAME_MAX_BYTES);
			assert((const uint8_t *)stub->name >= image->data &&
			       (const uint8_t *)stub->name + stub->name_size <
				       image->data + image->size);
			assert(!memchr(stub->name, '\0', stub->name_size));
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct call_handlers handlers = {.on_call = on_call, .on_address = on_address};
	OWNED(kernel_stubs) struct kernel_stubs *stubs = NULL;
	OWNED(elf_image) struct elf_image *image = NULL;
	OWNED(cfi) struct cfi *cfi = NULL;
	struct function_bounds bounds = {.find = find_bounds};

	assert(call_constants_read(EM_X86_64, data, size, 0x1000, &handlers) <= size);
	assert(call_constants_read(EM_AARCH64, data, size, 0x1000, &handlers) <= size);
	if (elf_image_from_memory(data, size, &image) || cfi_open(image, &cfi))
		return 0;
	bounds.context = cfi;
	assert(!kernel_stubs_read(image, &bounds, &stubs));
	check(image, stubs);
	return 0;
}
