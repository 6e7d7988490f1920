/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Nothing of it is needed: tracepoints are not run here. */
#ifndef HOST_BPF_TRACING_H
#define HOST_BPF_TRACING_H
#endif
