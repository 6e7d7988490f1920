/* SPDX-License-Identifier: BSD-2-Clause */
#include "files/kernel_names.h"

#include <errno.h>
#include <string.h>

#include "elf/demangle.h"
#include "elf/elf_symbols.h"

/* Answers that are being written: they always fit (FOREIGN_MAX_KERNELS). */
struct writing {
	uint8_t *memory;
	struct foreign_names head;
	struct foreign_name name[FOREIGN_MAX_KERNELS];
	const struct foreign_request *request;
	uint32_t unknown; /* answers that are "none" */
};

static void add_text(struct writing *writing, const char *text, size_t size, uint32_t *ret_at,
		     uint32_t *ret_bytes)
{
	uint8_t *to = writing->memory + foreign_text_at(writing->request->vaddr_count);

	if (size > FOREIGN_NAME_MAX_BYTES)
		size = FOREIGN_NAME_MAX_BYTES;
	memcpy(to + writing->head.text_bytes, text, size);
	*ret_at = writing->head.text_bytes;
	*ret_bytes = (uint32_t)size;
	writing->head.text_bytes += (uint32_t)size;
}

/* The name is copied before it is looked at: its file may change. */
static void add_name(struct writing *writing, size_t index, const char *name, size_t size)
{
	char demangled[DEMANGLE_MAX_BYTES], copy[KERNEL_STUB_NAME_MAX_BYTES];
	struct foreign_name *answer = &writing->name[index];

	if (size > sizeof(copy))
		size = sizeof(copy);
	memcpy(copy, name, size);
	writing->unknown--;
	if (!demangle(copy, size, demangled)) {
		add_text(writing, copy, size, &answer->name_at, &answer->name_bytes);
		return;
	}
	add_text(writing, demangled, strlen(demangled), &answer->name_at, &answer->name_bytes);
	add_text(writing, copy, size, &answer->system_at, &answer->system_bytes);
}

static void end(struct writing *writing, uint32_t *ret_size)
{
	const size_t text_at = foreign_text_at(writing->request->vaddr_count);
	uint8_t *memory = writing->memory;

	memcpy(memory, &writing->head, sizeof(writing->head));
	memcpy(memory + sizeof(writing->head), writing->name, text_at - sizeof(writing->head));
	*ret_size = (uint32_t)text_at + writing->head.text_bytes;
}

/* ---- of code ---- */

static bool find_bounds(void *context, uint64_t vaddr, uint64_t *ret_low, uint64_t *ret_high)
{
	struct cfi_range range;

	if (cfi_fde_find(context, vaddr, &range))
		return false;
	*ret_low = range.low;
	*ret_high = range.high;
	return true;
}

static int read_stubs(const struct kernel_names_source *source)
{
	const struct function_bounds bounds = {.find = find_bounds, .context = source->cfi};

	if (*source->stubs || !source->cfi)
		return 0;
	return kernel_stubs_read(source->image, &bounds, source->stubs);
}

/* Answers by what the file registers. */
static void add_registered(const struct kernel_names_source *source, struct writing *writing)
{
	const struct foreign_request *request = writing->request;

	for (uint32_t i = 0; i < request->vaddr_count && *source->stubs; i++) {
		const uint64_t vaddr = request->vaddr[i];
		const struct kernel_stub *stub;
		struct cfi_range range;

		if (cfi_fde_find(source->cfi, vaddr, &range) ||
		    (request->low && range.low != vaddr))
			continue;
		stub = kernel_stubs_find(*source->stubs, range.low);
		if (!stub)
			continue;
		writing->name[i].start = range.low;
		add_name(writing, i, stub->name, stub->name_size);
	}
}

/* Answers what is left by symbols. */
static void on_function(void *context, size_t index, const struct elf_function *found)
{
	struct writing *writing = context;
	struct foreign_name *answer = &writing->name[index];
	const char *name = found->name;
	size_t size = found->name_size;

	if (answer->name_bytes || !name || !size)
		return;
	if (!kernel_stub_of_symbol(found->name, found->name_size, &name, &size) &&
	    (!writing->request->low || found->start != answer->low))
		return;
	answer->start = found->start;
	add_name(writing, index, name, size);
}

int kernel_names_of_code(const struct kernel_names_source *source,
			 const struct foreign_request *request, uint8_t *memory, uint32_t *ret_size)
{
	struct writing writing = {.memory = memory,
				  .head = {.count = request->vaddr_count},
				  .request = request,
				  .unknown = request->vaddr_count};
	int err = read_stubs(source);

	if (err)
		return err;
	for (uint32_t i = 0; i < request->vaddr_count; i++) {
		writing.name[i].low = request->vaddr[i];
		writing.name[i].high = request->vaddr[i] + 1;
	}
	add_registered(source, &writing);
	if (writing.unknown)
		err = elf_symbols_find_many(source->image, source->debug, request->vaddr,
					    request->vaddr_count, on_function, &writing);
	if (err == -E2BIG || err == -ENOMEM)
		return err;
	end(&writing, ret_size);
	return 0;
}

/* ---- of texts ---- */

void kernel_names_of_texts(const struct foreign_request *request, uint8_t *memory,
			   uint32_t *ret_size)
{
	/* Answers are as many as texts, and lie where those of as many addresses would. */
	const struct foreign_request asked = {.vaddr_count = (uint32_t)request->low};
	struct writing writing = {
		.memory = memory, .head = {.count = asked.vaddr_count}, .request = &asked};
	const char *at = (const char *)request->vaddr;
	char demangled[DEMANGLE_MAX_BYTES];

	for (uint32_t i = 0; i < asked.vaddr_count; i++) {
		struct foreign_name *answer = &writing.name[i];
		const size_t size = strlen(at);

		answer->low = i;
		answer->high = i + 1U;
		if (demangle(at, size, demangled))
			add_text(&writing, demangled, strlen(demangled), &answer->name_at,
				 &answer->name_bytes);
		at += size + 1;
	}
	end(&writing, ret_size);
}
