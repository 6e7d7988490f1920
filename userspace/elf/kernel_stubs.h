/* SPDX-License-Identifier: BSD-2-Clause */
/* Which functions of an ELF file are the host's stubs of kernels for NVIDIA's GPUs, by what the
 * file registers itself.  A compiler of CUDA gives each file of its own a constructor that calls
 *     __cudaRegisterFunction(handle, stub, name, name, -1, 0, 0, 0, 0, 0)
 * for each kernel, or has a function called that does so; the calls are told by these arguments, so
 * that a stripped file with the runtime in itself has them, too.  Of a file without the section
 * .nvFatBinSegment nothing is read.
 * elf_image -> call_constants, elf_slots -> [kernel_stubs].  One thread per object. */
#ifndef ELF_KERNEL_STUBS_H
#define ELF_KERNEL_STUBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "elf/elf_image.h"

struct elf_slot {
	uint64_t vaddr; /* of a word of 8 bytes */
	uint64_t value; /* what it points to, in the file; 0: nothing of the file's own */
};

#define KERNEL_STUBS_MAX (1U << 17) /* in a file; kernels beyond have no name: kernels_unnamed */
#define KERNEL_STUB_FUNCTIONS_MAX (1U << 17)  /* that are read for registrations */
#define KERNEL_STUB_CODE_MAX_BYTES (1U << 20) /* of one of them; larger ones are cut */
/* A file's registrations may cost a quarter of what its parser may spend on all else, from a budget
 * of their own: without them it still has its rows and names.  That is 8 MB of code, in 60 ms. */
#define KERNEL_STUBS_MAX_UNITS (ELF_WORK_MAX_UNITS / 4)
#define KERNEL_STUB_UNITS_PER_BYTE 6U /* of code */
#define KERNEL_STUB_NAME_MAX_BYTES 4095U

/* Finds the bounds of the function that an address is in.  Returns whether there is one. */
struct function_bounds {
	bool (*find)(void *context, uint64_t vaddr, uint64_t *ret_low, uint64_t *ret_high);
	void *context;
};

struct kernel_stub {
	uint64_t vaddr; /* of the function's first instruction */
	/* As the program gives it to the driver: mangled where it is.  In the image, without a NUL;
	 * the bytes may have changed since. */
	const char *name;
	uint32_t name_size; /* bytes, at most KERNEL_STUB_NAME_MAX_BYTES */
};

struct kernel_stubs;

/* Reads what an image registers.  The image is borrowed and must outlive the object.  Returns 0,
 * also when there is nothing; -ENOMEM. */
int kernel_stubs_read(const struct elf_image *image, const struct function_bounds *bounds,
		      struct kernel_stubs **ret_stubs);
void kernel_stubs_free(struct kernel_stubs *stubs);
DEFINE_OWNED(struct kernel_stubs, kernel_stubs)

/* Returns the stub that begins at an address; NULL: none does, or it is registered with two
 * names. */
const struct kernel_stub *kernel_stubs_find(const struct kernel_stubs *stubs, uint64_t vaddr);
/* Finds the kernel's name in the name of a function that nvcc calls __device_stub_NAME, mangled or
 * not: it launches that kernel.  Returns whether it is one. */
bool kernel_stub_of_symbol(const char *symbol, size_t size, const char **ret_name,
			   size_t *ret_size);

#endif
