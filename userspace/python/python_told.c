/* SPDX-License-Identifier: BSD-2-Clause */
#include "python/python_told.h"

#include <errno.h>

#include "python/python_offsets.h"

#define LAST_TLS_MODE PP_TLS_GLOBAL

void python_told_from(const struct python_info *info, struct python_told *ret_told)
{
	*ret_told = (struct python_told){
		.bpf = info->bpf,
		.symbols = info->symbols,
		.tls = info->tls,
		.version_hex = info->version_hex,
		.has_offsets = info->offsets_from_file,
		.is_static_exe = info->is_static_exe,
		.runtime_interpreters_head = info->runtime_interpreters_head,
		.interp_next = info->interp_next,
		.interp_threads_head = info->interp_threads_head,
		.interp_modules = info->interp_modules,
		.ts_next = info->ts_next,
	};
}

/* The addresses are of the process' memory: whatever they are, a read there finds it or fails. */
static void take_addresses(const struct python_told *told, struct python_info *info)
{
	struct pp_python *bpf = &info->bpf;

	info->symbols = told->symbols;
	info->tls = told->tls;
	bpf->runtime = told->bpf.runtime;
	bpf->code_type = told->bpf.code_type;
	if (bpf->major != 3 || bpf->minor < 12) {
		bpf->interp_head = told->bpf.interp_head;
		bpf->interp_threads = (uint16_t)info->interp_threads_head;
		bpf->ts_next = info->ts_next;
	}
	if (bpf->gc_mode != PP_GC_GLOBAL)
		return;
	if (told->bpf.gc_mode == PP_GC_GLOBAL)
		bpf->gc_offset = told->bpf.gc_offset;
	else
		bpf->gc_mode = PP_GC_NONE;
}

static int take_ranges(const struct python_told *told, struct pp_python *bpf)
{
	const uint8_t count = told->bpf.eval_range_count;

	if (count > PP_MAX_EVAL_RANGES || (count && bpf->chain != PP_CHAIN_FRAME_OBJECT))
		return -EBADMSG;
	for (uint8_t i = 0; i < count; i++) {
		if (told->bpf.eval[i].low >= told->bpf.eval[i].high)
			return -EBADMSG;
		bpf->eval[i] = told->bpf.eval[i];
	}
	bpf->eval_range_count = count;
	if (!told->bpf.gil_wait_bytes)
		return 0;
	if (bpf->gil_mode != PP_GIL_CURRENT || bpf->major != 3 ||
	    told->bpf.gil_wait_low + told->bpf.gil_wait_bytes < told->bpf.gil_wait_low)
		return -EBADMSG;
	bpf->gil_wait_low = told->bpf.gil_wait_low;
	bpf->gil_wait_bytes = told->bpf.gil_wait_bytes;
	return 0;
}

int python_told_check(const struct python_told *told, struct python_info **ret_info)
{
	OWNED(python_info) struct python_info *info = NULL;
	const uint32_t major = told->version_hex >> 24, minor = told->version_hex >> 16 & 0xff;
	const struct python_layout *layout =
		python_layout_find(major, minor, told->bpf.flags & PP_PYTHON_FREE_THREADED);
	const bool needs_offsets = major == 3 && minor >= 13;

	if (!layout || needs_offsets != (told->has_offsets != 0) || !told->bpf.code_type ||
	    !told->symbols.runtime != (told->version_hex < 0x03070000) ||
	    (!told->symbols.runtime && !told->symbols.thread_state_current))
		return -EBADMSG;
	for (size_t i = 0; i < ARRAY_SIZE(told->tls.source); i++)
		if (told->tls.source[i].mode > LAST_TLS_MODE)
			return -EBADMSG;
	info = malloc(sizeof(*info));
	if (!info)
		return -ENOMEM;
	*info = layout->info;
	info->version_hex = told->version_hex;
	info->is_static_exe = told->is_static_exe != 0;
	if (needs_offsets && python_debug_offsets_take(told, info))
		return -EBADMSG;
	take_addresses(told, info);
	if (take_ranges(told, &info->bpf))
		return -EBADMSG;
	*ret_info = TAKE(info);
	return 0;
}
