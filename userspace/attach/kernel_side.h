/* SPDX-License-Identifier: BSD-2-Clause */
/* The loaded BPF object: its maps as plain functions and mapped memory.  Only this file knows the
 * skeleton. One thread. */
#ifndef ATTACH_KERNEL_SIDE_H
#define ATTACH_KERNEL_SIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pyprofd/config.h>
#include <pyprofd/process.h>
#include <pyprofd/python.h>
#include <pyprofd/sample.h>
#include <pyprofd/table.h>
#include <pyprofd/wait.h>

#include "attach/map_sizes.h"
#include "base/cleanup.h"
#include "base/user_shares.h"
#include "unwind/row_store.h"

struct kernel_side_options {
	struct map_sizes_options sizes; /* with waits: also attach to context switches, and scan
					 * for threads asleep at the start */
	bool timeline;			/* send records for the timeline; needs waits */
	bool wakers;			/* record who ended waits; needs waits */
	bool victims;			/* tell which processes end for want of memory */
	bool gpu;			/* keep the states of processes with CUDA */
};

struct kernel_side;

/* Sizes the maps, loads and verifies the programs and attaches those that follow processes.
 * Nothing is counted yet (PP_CONFIG_PAUSED).
 * Returns 0 or -errno with one line in `why` (the verifier's last line, when it refused). */
int kernel_side_open(const struct kernel_side_options *options, char *why, size_t why_size,
		     struct kernel_side **ret_side);
void kernel_side_free(struct kernel_side *side); /* detaches; NULL is allowed */
DEFINE_OWNED(struct kernel_side, kernel_side)

/* Gives each online CPU the memory for its walks; without it a CPU's samples count as no_scratch.
 * Returns 0; -ENOSPC: more CPUs are online than there is memory for; -ENOMEM. */
int kernel_side_follow_cpus(struct kernel_side *side, const uint32_t *online, size_t count);

struct kernel_side_parts {
	int sample_program;	      /* descriptors, which the object owns */
	int stacks, events, timeline; /* of rings; timeline: below 0 without it */
	int ledgers;
	int locks, spaces;		/* links: attach/mapping_locks.h */
	uint32_t cpu_count;		/* possible CPUs */
	uint32_t places;		/* of CPUs in `scratch` */
	uint32_t scratch_levels;	/* of walks that each of them has */
	bool switch_tells_state;	/* this kernel's sched_switch has the argument prev_state */
	uint32_t process_room;		/* processes that the kernel side's tables hold */
	struct pp_sample_timer *timers; /* mapped memory, by CPU */
	struct user_shares user_shares;
	struct pp_count *rest; /* mapped memory: 2 * PP_REST_ROWS rows */
};
/* Any thread. */
struct kernel_side_parts kernel_side_parts(const struct kernel_side *side);

/* Returns one of a pair of tables; below 0: it does not exist, without `wakers`. */
int kernel_side_table(const struct kernel_side *side, enum pp_table table, uint32_t number);

/* Returns mapped memory: the next sample sees what is written here. */
volatile struct pp_config *kernel_side_config(const struct kernel_side *side);
const struct row_store_memory *kernel_side_row_memory(const struct kernel_side *side);
struct pp_map_chunk *kernel_side_map_chunks(const struct kernel_side *side, uint32_t *ret_count);

struct pp_fill *kernel_side_fill(const struct kernel_side *side, enum pp_table table,
				 uint32_t number);

/* Returns the slots of threads; none without `waits`. */
struct pp_thread *kernel_side_threads(const struct kernel_side *side, uint32_t *ret_count);

/* Tells who answers for which ids (base/who_answers.h): PP_USER_RANGES rows at most, sorted. */
void kernel_side_set_user_ranges(struct kernel_side *side, const struct pp_user_range *range,
				 uint32_t count);

/* Counts that a thread of a user has no slot any more: bpf/lib/threads.bpf.h. */
void kernel_side_give_slot(struct kernel_side *side, uint32_t user);

/* Starts a scan of blocked threads.  The caller reads struct pp_scan_record from the descriptor,
 * up to its end, and closes it.  Returns 0; -ENOTSUP without `waits`; -errno. */
int kernel_side_open_scan(struct kernel_side *side, int *ret_fd);

/* The kernel side looks up again what it knows of processes: after a change of what is looked up
 * there.  The functions below do it themselves. */
void kernel_side_processes_changed(struct kernel_side *side);
/* processes[]: set_new returns -EEXIST when the kernel side knows the tgid already. */
int kernel_side_add_process(struct kernel_side *side, struct pp_process_id id);
int kernel_side_get_generation(struct kernel_side *side, uint32_t tgid, uint32_t *ret_generation);
int kernel_side_set_context(struct kernel_side *side, struct pp_process_id id,
			    const struct pp_process_context *context);
void kernel_side_delete_context(struct kernel_side *side, struct pp_process_id id);
int kernel_side_set_python(struct kernel_side *side, uint32_t index,
			   const struct pp_python *python);
int kernel_side_set_resync(struct kernel_side *side, uint32_t index,
			   const struct pp_resync *resync);
/* The kernel side sends the stack of this hash once more when it meets it, also in this epoch. */
void kernel_side_send_again(struct kernel_side *side, uint64_t hash);
/* Call it only when the kernel side has asked for the thread, because the table drops entries that
 * it does not use. */
int kernel_side_set_thread_state(struct kernel_side *side, const struct pp_thread_key *key,
				 uint64_t thread_state);

/* Adds up an entry of a map, here or of another object, that is `words` numbers on each CPU.
 * Returns 0; -ENOMEM; -errno. */
int kernel_side_sum(const struct kernel_side *side, int map, uint32_t key, __u64 *ret_sum,
		    size_t words);
/* Reads the losses, summed over all CPUs. */
int kernel_side_get_losses(const struct kernel_side *side, uint64_t ret_losses[PP_LOSS_COUNT]);
/* Reads how long the programs took, summed over all CPUs. */
int kernel_side_get_times(const struct kernel_side *side,
			  struct pp_times ret_times[PP_PROGRAM_COUNT]);
/* Counts the maps that another object, which is loaded, has beside those of this one; from any
 * thread. */
struct bpf_object;
void kernel_side_add_maps(const struct kernel_side *side, const struct bpf_object *object);
/* Returns the bytes that the kernel accounts for all maps. */
uint64_t kernel_side_map_bytes(const struct kernel_side *side);

/* Makes a second BPF object, which is opened and not loaded, use the maps of this one that have the
 * same names.  A program that walks stacks takes the kernel a second to verify, so what not every
 * run needs lies in objects of its own, which a thread beside the loop opens and loads.  has_pool:
 * the object gets a `scratch` of its own, of whose slots a pool is made (bpf/lib/user_probe.bpf.h).
 * A map that this run has not made is not made there either.  Returns 0 or -errno. */
int kernel_side_share_maps(const struct kernel_side *side, struct bpf_object *object,
			   bool has_pool);

#endif
