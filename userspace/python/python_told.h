/* SPDX-License-Identifier: BSD-2-Clause */
/* What another process found out about an interpreter file, and the check of it: the layout is
 * taken from our own table, and of what was told only what a file decides, within the bounds that
 * the kernel side relies on. */
#ifndef PYTHON_PYTHON_TOLD_H
#define PYTHON_PYTHON_TOLD_H

#include <stdint.h>

#include "python/python_info.h"

/* As in struct python_info, without types that have values of their own. */
struct python_told {
	struct pp_python bpf;
	struct python_symbols symbols;
	struct python_tls_plan tls;
	uint32_t version_hex;
	uint32_t has_offsets; /* not 0: offsets_from_file */
	uint32_t is_static_exe;
	uint32_t runtime_interpreters_head;
	uint32_t interp_next, interp_threads_head, interp_modules;
	uint32_t ts_next;
};

void python_told_from(const struct python_info *info, struct python_told *ret_told);
/* Returns 0; -EBADMSG: no file can be so; -ENOMEM. */
int python_told_check(const struct python_told *told, struct python_info **ret_info);

#endif
