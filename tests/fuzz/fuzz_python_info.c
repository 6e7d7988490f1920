/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: elf/elf_image.c elf/elf_symbol_table.c python/python_accessor.c python/python_debug_offsets.c python/python_info.c python/python_offsets.c python/python_tls.c elf/x86_decode.c unwind/cfi.c unwind/cfi_program.c unwind/cfi_go.c unwind/cfi_rule.c elf/go_table.c elf/debug_file.c base/safe_file.c */
/* An ELF file that may be an interpreter.  The result must keep the bounds that the kernel side
 * relies on.  The corpus: small libraries that have an interpreter's symbols and nothing else. */
#include "python/python_info.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "python/python_tls.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_optional(uint16_t offset, uint32_t limit)
{
	assert(offset == PP_NO_OFFSET || offset <= limit);
}

static void check_offsets(const struct pp_python *bpf)
{
	assert(bpf->chain > PP_CHAIN_NONE && bpf->chain <= PP_CHAIN_SHIM);
	assert(bpf->ts_frame <= PP_TSTATE_READ_BYTES - 8);
	assert(bpf->ts_interp <= PP_TSTATE_READ_BYTES - 8);
	assert(bpf->ts_thread_id <= PP_TSTATE_READ_BYTES - 8);
	check_optional(bpf->ts_native_id, PP_TSTATE_READ_BYTES - 8);
	check_optional(bpf->ts_cframe, PP_TSTATE_READ_BYTES - 8);
	assert(bpf->frame_code <= PP_FRAME_READ_BYTES - 8);
	assert(bpf->frame_previous <= PP_FRAME_READ_BYTES - 8);
	assert(bpf->frame_instr <= PP_FRAME_READ_BYTES - 8);
	check_optional(bpf->frame_owner, PP_FRAME_READ_BYTES - 1);
	check_optional(bpf->frame_is_entry, PP_FRAME_READ_BYTES - 1);
	check_optional(bpf->frame_tlbc_index, PP_FRAME_READ_BYTES - 8);
	assert(bpf->code_line_table <= PP_CODE_READ_BYTES - 8);
	assert(bpf->ob_type <= bpf->code_line_table);
	assert(bpf->code_flags <= bpf->code_line_table);
	assert(bpf->code_first_line <= bpf->code_line_table);
	assert(bpf->code_filename <= bpf->code_line_table);
	assert(bpf->code_name <= bpf->code_line_table);
	check_optional(bpf->code_qualname, bpf->code_line_table);
}

static void check_info(const struct python_info *info)
{
	const struct pp_python *bpf = &info->bpf;

	check_offsets(bpf);
	assert(bpf->code_type && (bpf->runtime || info->symbols.thread_state_current));
	assert(bpf->eval_range_count <= PP_MAX_EVAL_RANGES);
	for (unsigned int i = 0; i < bpf->eval_range_count; i++)
		assert(bpf->eval[i].low < bpf->eval[i].high);
	if (bpf->gil_mode == PP_GIL_TSTATE_BIT || bpf->gil_mode == PP_GIL_TSTATE_INT)
		assert(bpf->gil_offset <= PP_TSTATE_READ_BYTES - 8);
	check_optional(bpf->interp_gil, PP_NO_OFFSET - 8);
	assert(bpf->gil_wait_low + bpf->gil_wait_bytes >= bpf->gil_wait_low);
	assert(!bpf->gil_wait_bytes || (bpf->gil_mode == PP_GIL_CURRENT && bpf->major == 3));
	for (int i = 0; i < 2; i++)
		assert(info->tls.source[i].mode <= PP_TLS_GLOBAL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	OWNED(elf_image) struct elf_image *image = NULL;
	OWNED(python_info) struct python_info *info = NULL;
	const char *reason = NULL;
	struct accessor accessor;
	int err;

	if (elf_image_from_memory(data, size, &image))
		return 0;
	err = python_info_read(image, &info, &reason);
	assert(!err == !!info);
	assert((err == -ENOTSUP) == !!reason);
	if (!err)
		check_info(info);
	if (!python_accessor_read(image, "_PyThreadState_GetCurrent", &accessor))
		assert(accessor.touched_count <= ACCESSOR_MAX_TOUCHED);
	return 0;
}
