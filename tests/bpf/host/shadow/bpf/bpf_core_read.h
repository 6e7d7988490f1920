/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef HOST_BPF_CORE_READ_H
#define HOST_BPF_CORE_READ_H

#include <stdbool.h>

/* Whether this kernel has a field, by how the source writes it. */
bool host_field_exists(const char *field);
bool host_helper_exists(void);

/* As the kernel's: reading through NULL gives zeros. */
#define CORE_READ_1(source, a)                                                                     \
	({                                                                                         \
		__auto_type source_ = (source);                                                    \
		source_ ? source_->a : (__typeof__(source_->a)){0};                                \
	})
#define CORE_READ_2(source, a, b) CORE_READ_1(CORE_READ_1(source, a), b)
#define CORE_READ_3(source, a, b, c) CORE_READ_1(CORE_READ_2(source, a, b), c)
#define CORE_READ_PICK(source, a, b, c, name, ...) name
#define BPF_CORE_READ(...)                                                                         \
	CORE_READ_PICK(__VA_ARGS__, CORE_READ_3, CORE_READ_2, CORE_READ_1, )(__VA_ARGS__)
#define BPF_CORE_READ_BITFIELD_PROBED(source, field) ((source)->field)
#define bpf_core_type_id_kernel(type) 0
#define bpf_core_enum_value_exists(type, value) host_helper_exists()
#define bpf_core_field_exists(...) host_field_exists(#__VA_ARGS__)

#endif
