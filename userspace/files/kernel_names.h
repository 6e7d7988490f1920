/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of kernels, in the form in which the child answers: of the host's functions that stand for
 * them, and of mangled texts that a program gave to CUDA's driver. */
#ifndef FILES_KERNEL_NAMES_H
#define FILES_KERNEL_NAMES_H

#include "elf/kernel_stubs.h"
#include "files/protocol.h"

/* What is known of a file that is asked about. */
struct kernel_names_source {
	const struct elf_image *image;
	struct cfi
		*cfi; /* NULL: there is no unwind information, and nothing to go by but symbols */
	const struct debug_files *debug;
	struct kernel_stubs **stubs; /* kept between questions; NULL: not read yet */
};

/* Answers a sound FOREIGN_KERNELS: a struct foreign_names, in which a name is a kernel's,
 * demangled, and the system's name mangled; none: the function is no stub.  A stub is what the file
 * registers (elf/kernel_stubs.h), or has such a symbol (kernel_stub_of_symbol()); where the
 * addresses are those of functions that a program launches, each symbol that begins there is its
 * name.
 * Returns 0; -E2BIG; -ENOMEM. */
int kernel_names_of_code(const struct kernel_names_source *source,
			 const struct foreign_request *request, uint8_t *memory,
			 uint32_t *ret_size);

/* Answers a sound FOREIGN_TEXTS: as the above, for [i, i + 1) the name of text i; none: it is not
 * mangled. */
void kernel_names_of_texts(const struct foreign_request *request, uint8_t *memory,
			   uint32_t *ret_size);

#endif
