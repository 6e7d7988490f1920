/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Structures of a program that say what a copy copies, and what a node of a graph does: enum
 * pp_cuda_layout.  Offsets are those of cuda.h and driver_types.h of CUDA 11 to 13. */
#ifndef BPF_LIB_CUDA_LAYOUTS_H
#define BPF_LIB_CUDA_LAYOUTS_H

#include "lib/cuda_maps.bpf.h"
#include "lib/maps.bpf.h"

#define LAYOUT_DIRECTION_SHIFT 56

/* CUmemorytype of cuda.h: 1 host, 2 device, 3 array, 4 unified. */
static __always_inline __u8 cuda_direction_between(__u32 from, __u32 to)
{
	bool is_from_host = from == 1, is_to_host = to == 1;

	if (!from || !to || from > 3 || to > 3)
		return PP_CUDA_UNIFIED;
	if (is_from_host)
		return is_to_host ? PP_CUDA_HTOH : PP_CUDA_HTOD;
	return is_to_host ? PP_CUDA_DTOH : PP_CUDA_DTOD;
}

/* Returns a product below 2^56; 0: it is larger, which nothing is that a device has. */
static __always_inline __u64 cuda_product(__u64 a, __u64 b)
{
	const __u64 most = (1ULL << LAYOUT_DIRECTION_SHIFT) - 1;

	return a && b > most / a ? 0 : a * b;
}

/* Sizes of the copies of a batch.  Returns their sum; behind the first PP_CUDA_BATCH_MAX the others
 * are taken to be like those. */
static __always_inline __u64 cuda_read_batch(__u64 address, __u64 count)
{
	__u64 sum = 0, size, read = count < PP_CUDA_BATCH_MAX ? count : PP_CUDA_BATCH_MAX;

	for (__u32 i = 0; i < PP_CUDA_BATCH_MAX; i++) {
		size = 0;
		if (i >= read)
			break;
		bpf_probe_read_user(&size, sizeof(size), (const void *)(address + 8ULL * i));
		sum += size;
	}
	if (count <= read)
		return sum;
	count_loss(PP_LOSS_CUDA_BYTES_GUESSED);
	return sum / PP_CUDA_BATCH_MAX * count;
}

/* nccl.h: ncclDataType_t, from ncclInt8 to ncclFloat8e5m2: how often the size of a byte doubles. */
#define ELEMENT_TYPES 12U
#define ELEMENT_SHIFTS 0x001321332200ULL

/* Returns the bytes of so many elements; of a type that is not known, as if each were a byte. */
static __always_inline __u64 cuda_elements(__u64 count, __u32 type)
{
	if (type < ELEMENT_TYPES)
		return count << (ELEMENT_SHIFTS >> 4 * type & 3);
	count_loss(PP_LOSS_CUDA_BYTES_GUESSED);
	return count;
}

/* Reads what a structure says.  count: of an array; the type of elements.  Returns the bytes, and
 * the direction above them.  Not inlined, as all that follows here: a walk leaves none of the stack
 * to spare. */
__noinline __u64 cuda_read_layout(__u64 address, __u32 layout, __u64 count)
{
	__u64 size[3] = {0, 0, 1}, at = address, direction = 0;
	__u32 word[2] = {0, 0};

	switch (layout) {
	case PP_CUDA_LAYOUT_2D:
		bpf_probe_read_user(size, 16, (const void *)(at + 112));
		bpf_probe_read_user(&word[0], sizeof(word[0]), (const void *)(at + 16));
		bpf_probe_read_user(&word[1], sizeof(word[1]), (const void *)(at + 72));
		direction = cuda_direction_between(word[0], word[1]);
		break;
	case PP_CUDA_LAYOUT_3D:
		bpf_probe_read_user(size, 24, (const void *)(at + 176));
		bpf_probe_read_user(&word[0], sizeof(word[0]), (const void *)(at + 32));
		bpf_probe_read_user(&word[1], sizeof(word[1]), (const void *)(at + 120));
		direction = cuda_direction_between(word[0], word[1]);
		break;
	case PP_CUDA_LAYOUT_RUNTIME_3D:
		bpf_probe_read_user(size, 24, (const void *)(at + 128));
		bpf_probe_read_user(&word[0], sizeof(word[0]), (const void *)(at + 152));
		direction = word[0] < 5 ? PP_CUDA_HTOH + word[0] : PP_CUDA_UNIFIED;
		break;
	case PP_CUDA_LAYOUT_FILL:
		bpf_probe_read_user(size, 16, (const void *)(at + 24));
		bpf_probe_read_user(&word[0], sizeof(word[0]), (const void *)(at + 20));
		size[2] = word[0];
		break;
	case PP_CUDA_LAYOUT_ELEMENTS:
		return cuda_elements(address, count) << 8 >> 8;
	default: /* PP_CUDA_LAYOUT_BATCH */
		return cuda_read_batch(address, count) << 8 >> 8 |
		       (__u64)PP_CUDA_UNIFIED << LAYOUT_DIRECTION_SHIFT;
	}
	size[0] = cuda_product(cuda_product(size[0], size[1]), size[2]);
	return size[0] | direction << LAYOUT_DIRECTION_SHIFT;
}

/* CUgraphNodeType, and where the parameters of each lie in CUgraphNodeParams. */
#define NODE_KERNEL 0U
#define NODE_COPY 1U
#define NODE_FILL 2U
#define NODE_GRAPH 4U
#define NODE_CONDITIONAL 13U
#define NODE_PARAMS_AT 16U
#define NODE_COPY_AT 32U

/* Returns which enum pp_cuda_node a CUgraphNodeParams is of. */
__noinline __u32 cuda_read_node(__u64 address)
{
	__u32 type = 0;

	if (bpf_probe_read_user(&type, sizeof(type), (const void *)address) ||
	    type >= NODE_CONDITIONAL)
		return PP_CUDA_NODE_UNKNOWN;
	if (type == NODE_KERNEL)
		return PP_CUDA_NODE_KERNEL;
	if (type == NODE_GRAPH)
		return PP_CUDA_NODE_GRAPH;
	return type == NODE_COPY || type == NODE_FILL ? PP_CUDA_NODE_COPY : PP_CUDA_NODE_OTHER;
}

/* Returns how many bytes it copies, or which graph it is. */
__noinline __u64 cuda_read_node_what(__u64 address, __u32 node)
{
	__u64 graph = 0;
	__u32 type = 0;

	if (node == PP_CUDA_NODE_GRAPH)
		bpf_probe_read_user(&graph, sizeof(graph),
				    (const void *)(address + NODE_PARAMS_AT));
	if (node != PP_CUDA_NODE_COPY)
		return graph;
	bpf_probe_read_user(&type, sizeof(type), (const void *)address);
	return (type == NODE_COPY
			? cuda_read_layout(address + NODE_COPY_AT, PP_CUDA_LAYOUT_3D, 0)
			: cuda_read_layout(address + NODE_PARAMS_AT, PP_CUDA_LAYOUT_FILL, 0))
	       << 8 >> 8;
}

#endif
