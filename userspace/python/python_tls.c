/* SPDX-License-Identifier: BSD-2-Clause */
#include "python/python_tls.h"

#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "elf/elf_symbol_table.h"

/* autoTSSkey and the words read around it are in this part of _PyRuntime. */
#define RUNTIME_KEYS_BEGIN 64U
#define RUNTIME_KEYS_END 8192U

#define MAX_TLS_BYTES (1 << 26) /* of one file, and its distance from the thread pointer */

/* Py_tss_t: int is_initialized, then the key. */
#define TSS_KEY_VALUE 4U

static int plan_from_value(const struct elf_image *image, const struct accessor_value *value,
			   struct pp_tls *ret_tls)
{
	struct pp_tls tls = {.mode = PP_TLS_NONE};
	int64_t offset = value->offset;
	uint64_t second;
	const uint8_t *at;
	uint32_t type;

	if (value->kind == ACCESSOR_THREAD_VALUE) {
		tls.mode = PP_TLS_THREAD_OFFSET;
		tls.address = value->address;
	} else if (value->kind == ACCESSOR_BLOCK_VALUE) {
		/* A GOT pair: module id, then the offset in its block, which has a relocation when
		 * the variable is exported. */
		at = elf_image_at(image, value->address + 8, 8);
		if (elf_image_relocation(image, value->address + 8, &type, &second)) {
			if (!at)
				return -EBADMSG;
			second = load_u64(at);
		}
		offset = (int64_t)((uint64_t)offset + second);
		tls.mode = PP_TLS_DTV;
		tls.address = value->address;
	} else {
		return -ENOENT;
	}
	if (offset < -MAX_TLS_BYTES || offset > MAX_TLS_BYTES)
		return -EBADMSG;
	tls.offset = (int32_t)offset;
	*ret_tls = tls;
	return 0;
}

/* The executable's own TLS block is at a fixed distance from the thread pointer.
 * Source: "ELF Handling For Thread-Local Storage", section 3, variants I (aarch64) and II. */
static int plan_from_symbol(const struct elf_image *image, const char *name, struct pp_tls *ret_tls)
{
	const uint64_t align = image->tls_align ? image->tls_align : 1;
	const uint64_t size = image->tls_memory_size;
	struct elf_symbol symbol;

	if (elf_image_symbol(image, name, &symbol) || symbol.type != STT_TLS || size > (1U << 24) ||
	    align > 4096 || (align & (align - 1)) || symbol.value >= size)
		return -ENOENT;
	*ret_tls = (struct pp_tls){.mode = PP_TLS_THREAD_OFFSET};
	if (image->machine == EM_AARCH64)
		ret_tls->offset = (int32_t)(symbol.value + (align > 16 ? align : 16));
	else
		ret_tls->offset =
			(int32_t)symbol.value - (int32_t)((size + align - 1) & ~(align - 1));
	return 0;
}

static struct pp_tls plan_variable(const struct elf_image *image, bool is_static_exe,
				   const char *const *accessors, const char *symbol)
{
	struct accessor accessor;
	struct pp_tls tls = {0};

	for (; *accessors; accessors++)
		if (!python_accessor_read(image, *accessors, &accessor) &&
		    !plan_from_value(image, &accessor.result, &tls))
			return tls;
	if (is_static_exe)
		plan_from_symbol(image, symbol, &tls);
	return tls;
}

/* Returns the offset in _PyRuntime of an address that an accessor used; 0 when it is elsewhere. */
static uint64_t offset_in_runtime(const struct elf_image *image, const struct python_info *info,
				  const struct accessor_value *touched)
{
	uint64_t offset, base;
	uint32_t type;

	if (touched->kind == ACCESSOR_LOADED) {
		if (elf_image_relocation(image, touched->address, &type, &base) ||
		    base != info->symbols.runtime)
			return 0;
		offset = (uint64_t)touched->offset;
	} else {
		offset = (uint64_t)touched->offset - info->symbols.runtime;
	}
	return offset >= RUNTIME_KEYS_BEGIN && offset < RUNTIME_KEYS_END ? offset : 0;
}

static uint64_t table_key(const struct elf_image *image, const struct python_layout *layout,
			  const struct python_info *info)
{
	struct elf_symbol runtime;
	uint64_t key = layout->tss_key;

	/* 3.7.0-3.7.3 lack the GIL's second condition variable and mutex (48 and 40 bytes). */
	if (layout->runtime_bytes && image->machine == EM_X86_64 &&
	    !elf_image_symbol(image, "_PyRuntime", &runtime) && runtime.size &&
	    runtime.size + 88 == layout->runtime_bytes)
		key -= 88;
	/* glibc for aarch64: pthread_mutex_t has 48 bytes instead of 40, and two of them come
	 * before. */
	if (key && image->machine == EM_AARCH64 && info->bpf.minor <= 11)
		key += 16;
	return key;
}

/* Finds the key: PyGILState_GetThisThreadState() reads autoInterpreterState (<= 3.11) and then
 * autoTSSkey, the last address in _PyRuntime that it uses. */
static uint64_t find_key(const struct elf_image *image, const struct python_layout *layout,
			 const struct python_info *info)
{
	uint64_t last = 0, offset;
	struct accessor accessor;

	if (python_accessor_read(image, "PyGILState_GetThisThreadState", &accessor))
		return table_key(image, layout, info);
	for (size_t i = 0; i < accessor.touched_count; i++) {
		offset = offset_in_runtime(image, info, &accessor.touched[i]);
		if (offset > last)
			last = offset;
	}
	return last ? last & ~7ULL : table_key(image, layout, info);
}

uint64_t python_accessor_variable(const struct elf_image *image, const char *name)
{
	struct accessor accessor;

	if (python_accessor_read(image, name, &accessor))
		return 0;
	if (accessor.result.kind != ACCESSOR_LOADED || accessor.result.offset)
		return 0;
	/* It must be in the file's own data, which includes .bss. */
	if (accessor.result.address < image->min_vaddr ||
	    accessor.result.address >= image->max_vaddr)
		return 0;
	return accessor.result.address;
}

static uint64_t find_key_36(const struct elf_image *image, const struct python_info *info)
{
	struct accessor accessor;

	if (info->symbols.auto_tls_key)
		return info->symbols.auto_tls_key;
	/* return PyThread_get_key_value(autoTLSkey) */
	if (python_accessor_read(image, "PyGILState_GetThisThreadState", &accessor) ||
	    accessor.argument.kind != ACCESSOR_LOADED || accessor.argument.offset ||
	    accessor.argument.address < image->min_vaddr ||
	    accessor.argument.address >= image->max_vaddr)
		return 0;
	return accessor.argument.address;
}

static void plan_key(struct python_info *info, uint64_t address)
{
	if (address)
		info->tls.source[1] =
			(struct pp_tls){.mode = PP_TLS_PTHREAD_KEY, .address = address};
}

void python_tls_plan(const struct elf_image *image, const struct python_layout *layout,
		     struct python_info *info)
{
	static const char *const attached[] = {"_PyThreadState_GetCurrent",
					       "PyThreadState_GetUnchecked",
					       "_PyThreadState_UncheckedGet", NULL};
	static const char *const gilstate[] = {"PyGILState_GetThisThreadState", NULL};
	const uint64_t runtime = info->symbols.runtime;
	uint64_t key, distance;

	if (!runtime) {
		info->tls.source[0] = (struct pp_tls){
			.mode = PP_TLS_GLOBAL, .address = info->symbols.thread_state_current};
		if (info->bpf.major == 3)
			plan_key(info, find_key_36(image, info));
		return;
	}
	key = layout->tss_key ? find_key(image, layout, info) : 0;
	if (key) {
		plan_key(info, runtime + key + TSS_KEY_VALUE);
	} else {
		info->tls.source[1] =
			plan_variable(image, info->is_static_exe, gilstate, "_Py_tss_gilstate");
	}
	if (info->bpf.minor >= 12) {
		info->tls.source[0] =
			plan_variable(image, info->is_static_exe, attached, "_Py_tss_tstate");
		return;
	}
	/* tstate_current is at a fixed distance before the key, even when both are elsewhere than
	 * in the table. */
	distance = layout->tss_key - layout->state_current;
	info->tls.source[0] =
		(struct pp_tls){.mode = PP_TLS_GLOBAL, .address = runtime + key - distance};
}
