/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef HOST_BPF_CORE_READ_H
#define HOST_BPF_CORE_READ_H

#define BPF_CORE_READ(source, field) ((source)->field)
#define bpf_core_enum_value_exists(type, value) 1

#endif
