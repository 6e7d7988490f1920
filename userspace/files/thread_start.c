/* SPDX-License-Identifier: BSD-2-Clause */
#include "files/thread_start.h"

#include <string.h>

#define CLONE_CODE_BYTES 64U
#define START_CODE_BYTES 64U

/* A function whose unwind rule says that it has no caller is _start when it lies at the file's
 * entry point, and clone when it follows that system call.  Source: the psABI's system call
 * convention; arch/x86/entry/syscalls/syscall_64.tbl. */
const char *thread_start_name(const struct elf_image *image, struct cfi *cfi, uint64_t vaddr)
{
	static const uint8_t load_clone3[] = {0xb8, 0xb3, 0x01, 0x00, 0x00}; /* mov $435,%eax */
	static const uint8_t load_clone[] = {0xb8, 0x38, 0x00, 0x00, 0x00};  /* mov $56,%eax */
	struct pp_rule rule;
	const uint8_t *code;

	if (image->machine != EM_X86_64 || cfi_rule_at(cfi, vaddr, &rule) ||
	    rule.kind != PP_RULE_STOP)
		return NULL;
	if (vaddr - image->entry < START_CODE_BYTES)
		return "_start";
	code = elf_image_at(image, vaddr - CLONE_CODE_BYTES, CLONE_CODE_BYTES);
	if (!code)
		return NULL;
	if (memmem(code, CLONE_CODE_BYTES, load_clone3, sizeof(load_clone3)))
		return "clone3";
	return memmem(code, CLONE_CODE_BYTES, load_clone, sizeof(load_clone)) ? "clone" : NULL;
}
