/* SPDX-License-Identifier: BSD-2-Clause */
/* Numbers the modules (mapped files) of the open profiles. */
#ifndef WINDOWS_MODULES_H
#define WINDOWS_MODULES_H

#include <stdint.h>

struct file_table;
struct intern;
struct modules;
struct profiles;

/* Both are borrowed.  Returns 0 or -ENOMEM. */
int modules_new(const struct file_table *files, struct profiles *profiles,
		struct modules **ret_modules);
void modules_free(struct modules *modules);
/* Forgets all numbers: new profiles were opened, and their strings are these. */
void modules_begin(struct modules *modules, struct intern *strings);
/* Returns the number of the file in a slot of the file table, and adds it to the profiles on the
 * first call.  0 means that there was no memory. */
uint32_t modules_get(struct modules *modules, uint32_t slot);
/* Returns the number of the module that kernels of the GPU are in, as modules_get(). */
#define MODULES_GPU "[gpu]"
uint32_t modules_get_gpu(struct modules *modules);

#endif
