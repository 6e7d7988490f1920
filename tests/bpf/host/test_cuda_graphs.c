/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* bpf/lib/cuda_graphs.bpf.h and cuda.bpf.h: which calls a graph records, what it has, and
 * what structures of CUDA's say. */
#include "host.h"

#include <lib/cuda.bpf.h>
#include <lib/cuda_graphs.bpf.h>

#define TGID 70U
#define GENERATION 5U
#define STREAM 0x5000ULL
#define OTHER 0x5100ULL
#define THIRD 0x5200ULL
#define EVENT 0x6000ULL
#define GRAPH 0x7000ULL
#define INSTANCE 0x8000ULL
#define ROW 0x901ULL

static uint64_t thread_of(uint32_t tid)
{
	return (uint64_t)TGID << 32 | tid;
}

static struct cuda_thread *thread_get(uint32_t tid)
{
	uint64_t id = thread_of(tid);

	return bpf_map_lookup_elem(&cuda_threads, &id);
}

static int setup(void **state)
{
	struct cuda_thread thread = {.generation = GENERATION};

	assert_int_equal(host_setup(state), 0);
	host_add_hash(&cuda_objects, sizeof(struct cuda_object_key), sizeof(struct cuda_object));
	host_add_hash(&cuda_threads, sizeof(uint64_t), sizeof(struct cuda_thread));
	host_add_hash(&cuda_processes, sizeof(uint32_t), sizeof(struct cuda_process));
	host_add_hash(&cuda_totals, sizeof(uint64_t), sizeof(struct pp_cuda_totals));
	host_add_array(&cuda_gates, PP_CUDA_LAUNCHES, sizeof(struct pp_gate));
	host_add_array(&cuda_machine, 1, sizeof(struct cuda_machine));
	host->task.tgid = TGID;
	host->ns_a_reading = 1000;
	for (uint32_t tid = 71; tid < 74; tid++) {
		uint64_t id = thread_of(tid);

		assert_int_equal(bpf_map_update_elem(&cuda_threads, &id, &thread, BPF_ANY), 0);
	}
	host->task.pid = 71;
	return 0;
}

static const struct cuda_thread *looked(uint32_t tid)
{
	assert_int_equal(cuda_thread_look(thread_of(tid)), 0);
	return thread_get(tid);
}

static uint32_t changes(void)
{
	return cuda_machine_get()->changes;
}

static bool is_captured(uint32_t tid, uint64_t stream)
{
	return cuda_captured(thread_of(tid), GENERATION, stream);
}

static void begin(uint32_t tid, uint64_t stream)
{
	assert_int_equal(cuda_capture_begin(thread_of(tid), stream, 0), 0);
}

static void begin_into(uint32_t tid, uint64_t stream, uint64_t graph)
{
	assert_int_equal(cuda_capture_begin(thread_of(tid), stream, graph), 0);
}

static void end(uint32_t tid, uint64_t stream, uint64_t graph, uint32_t result)
{
	assert_int_equal(cuda_capture_end(thread_of(tid), stream, graph, result), 0);
}

/* A launch, or a copy of so many bytes, as it goes into a stream that is captured. */
static void record(uint32_t tid, uint64_t stream, uint32_t node, uint64_t what)
{
	uint64_t number = cuda_captured(thread_of(tid), GENERATION, stream);

	assert_true(number);
	cuda_node_add(GENERATION, number, PP_CUDA_OBJECT_CAPTURE << 8 | node, what);
}

static void assert_has(uint64_t handle, uint32_t kind, uint32_t kernels, uint64_t bytes,
		       bool is_partial)
{
	const struct cuda_object *object = object_get(GENERATION, handle, kind);

	assert_non_null(object);
	assert_int_equal(object->kernels, kernels);
	assert_int_equal(object->bytes, bytes);
	assert_int_equal(object->is_partial, is_partial);
}

/* ---- captures ---- */

static void capture__has_the_calls_of_its_stream(void **state)
{
	const uint32_t before = changes();

	(void)state;
	assert_int_equal(looked(72)->captures, 0);
	begin(71, STREAM);
	assert_int_not_equal(changes(), before);
	/* Of another thread, too. */
	assert_int_equal(looked(72)->captures, 1);
	assert_true(is_captured(72, STREAM));
	assert_false(is_captured(71, OTHER));
	record(71, STREAM, PP_CUDA_NODE_KERNEL, 0);
	record(72, STREAM, PP_CUDA_NODE_KERNEL, 0);
	record(71, STREAM, PP_CUDA_NODE_COPY, 1000);
	record(71, STREAM, PP_CUDA_NODE_OTHER, 77);
	end(71, STREAM, GRAPH, 0);
	assert_false(is_captured(71, STREAM));
	assert_int_equal(looked(72)->captures, 0);
	assert_has(GRAPH, PP_CUDA_OBJECT_GRAPH, 2, 1000, false);
	assert_int_equal(host->losses[PP_LOSS_CUDA_CAPTURES_UNSEEN], 0);
}

static void capture__of_two_streams_are_two(void **state)
{
	(void)state;
	begin(71, STREAM);
	begin(72, OTHER);
	record(71, STREAM, PP_CUDA_NODE_KERNEL, 0);
	end(71, STREAM, GRAPH, 0);
	assert_int_equal(looked(71)->captures, 1);
	assert_false(is_captured(71, STREAM));
	assert_true(is_captured(73, OTHER));
	end(72, OTHER, GRAPH + 16, 0);
	assert_has(GRAPH, PP_CUDA_OBJECT_GRAPH, 1, 0, false);
	assert_has(GRAPH + 16, PP_CUDA_OBJECT_GRAPH, 0, 0, false);
}

static void capture__of_a_threads_own_stream_is_that_threads(void **state)
{
	(void)state;
	begin(71, PP_CUDA_STREAM_PER_THREAD);
	assert_true(is_captured(71, PP_CUDA_STREAM_PER_THREAD));
	assert_false(is_captured(72, PP_CUDA_STREAM_PER_THREAD));
	end(72, PP_CUDA_STREAM_PER_THREAD, 0, 401);
	assert_true(is_captured(71, PP_CUDA_STREAM_PER_THREAD));
	end(71, PP_CUDA_STREAM_PER_THREAD, GRAPH, 0);
	assert_false(is_captured(71, PP_CUDA_STREAM_PER_THREAD));
}

static void capture__into_a_graph_adds_to_it(void **state)
{
	(void)state;
	assert_int_equal(cuda_graph_made(GENERATION, GRAPH), 0);
	cuda_node_add(GENERATION, GRAPH, PP_CUDA_OBJECT_GRAPH << 8 | PP_CUDA_NODE_KERNEL, 0);
	begin_into(71, STREAM, GRAPH);
	record(71, STREAM, PP_CUDA_NODE_KERNEL, 0);
	record(71, STREAM, PP_CUDA_NODE_COPY, 5);
	end(71, STREAM, GRAPH, 0);
	assert_has(GRAPH, PP_CUDA_OBJECT_GRAPH, 2, 5, false);
	/* What is not known may have had something before. */
	begin_into(71, STREAM, GRAPH + 16);
	record(71, STREAM, PP_CUDA_NODE_KERNEL, 0);
	end(71, STREAM, GRAPH + 16, 0);
	assert_has(GRAPH + 16, PP_CUDA_OBJECT_GRAPH, 1, 0, true);
}

/* Its handle may be that of a graph which went with its context. */
static void capture__makes_a_graph_that_has_nothing_else(void **state)
{
	(void)state;
	begin(71, STREAM);
	record(71, STREAM, PP_CUDA_NODE_KERNEL, 0);
	record(71, STREAM, PP_CUDA_NODE_COPY, 5);
	end(71, STREAM, GRAPH, 0);
	begin(71, STREAM);
	record(71, STREAM, PP_CUDA_NODE_KERNEL, 0);
	end(71, STREAM, GRAPH, 0);
	assert_has(GRAPH, PP_CUDA_OBJECT_GRAPH, 1, 0, false);
}

/* A thread launches while another one ends the capture. */
static void capture__that_has_ended_is_not_begun_by_a_late_call(void **state)
{
	uint64_t number;

	(void)state;
	begin(71, STREAM);
	number = cuda_captured(thread_of(72), GENERATION, STREAM);
	assert_true(number);
	end(71, STREAM, GRAPH, 0);
	cuda_node_add(GENERATION, number, PP_CUDA_OBJECT_CAPTURE << 8 | PP_CUDA_NODE_KERNEL, 0);
	assert_null(object_get(GENERATION, number, PP_CUDA_OBJECT_CAPTURE));
}

/* ---- what goes wrong ---- */

static void capture__that_fails_to_end_goes_on(void **state)
{
	static const uint32_t results[] = {1, 401, 903, 908};

	(void)state;
	begin(71, STREAM);
	for (size_t i = 0; i < sizeof(results) / sizeof(results[0]); i++) {
		end(71, STREAM, GRAPH, results[i]);
		assert_true(is_captured(71, STREAM));
	}
	assert_null(object_get(GENERATION, GRAPH, PP_CUDA_OBJECT_GRAPH));
	assert_int_equal(host->losses[PP_LOSS_CUDA_CAPTURES_UNSEEN], 0);
}

static void capture__that_is_invalid_ends_without_a_graph(void **state)
{
	static const uint32_t results[] = {901, 904};

	(void)state;
	for (size_t i = 0; i < sizeof(results) / sizeof(results[0]); i++) {
		begin(71, STREAM);
		record(71, STREAM, PP_CUDA_NODE_KERNEL, 0);
		end(71, STREAM, GRAPH, results[i]);
		assert_false(is_captured(71, STREAM));
		assert_int_equal(looked(71)->captures, 0);
		assert_null(object_get(GENERATION, GRAPH, PP_CUDA_OBJECT_GRAPH));
	}
}

static void capture__that_was_not_seen_to_begin_is_told(void **state)
{
	(void)state;
	end(71, STREAM, GRAPH, 0);
	assert_int_equal(host->losses[PP_LOSS_CUDA_CAPTURES_UNSEEN], 1);
	assert_has(GRAPH, PP_CUDA_OBJECT_GRAPH, 0, 0, true);
	assert_int_equal(looked(71)->captures, 0);
}

static void capture__of_a_process_that_was_forgotten_is_told(void **state)
{
	uint32_t tgid = TGID;

	(void)state;
	begin(71, STREAM);
	assert_int_equal(bpf_map_delete_elem(&cuda_processes, &tgid), 0);
	end(71, STREAM, GRAPH, 0);
	assert_int_equal(host->losses[PP_LOSS_CUDA_CAPTURES_UNSEEN], 1);
	assert_int_equal(looked(71)->captures, 0);
}

static void capture__that_was_not_seen_to_end_makes_room(void **state)
{
	(void)state;
	for (int i = 0; i < 100; i++)
		begin(71, STREAM);
	assert_int_equal(looked(71)->captures, 1);
	end(71, STREAM, GRAPH, 0);
	assert_int_equal(looked(71)->captures, 0);
}

static void capture__ends_with_its_stream(void **state)
{
	(void)state;
	begin(71, STREAM);
	cuda_stream_ended(GENERATION, OTHER);
	assert_true(is_captured(71, STREAM));
	cuda_stream_ended(GENERATION, STREAM);
	assert_false(is_captured(71, STREAM));
	assert_int_equal(looked(71)->captures, 0);
}

static void capture__is_not_that_of_another_program(void **state)
{
	(void)state;
	begin(71, STREAM);
	thread_get(71)->generation = GENERATION + 1;
	assert_int_equal(looked(71)->captures, 0);
	assert_false(cuda_captured(thread_of(71), GENERATION + 1, STREAM));
	/* It has its own from then on. */
	begin(71, OTHER);
	assert_int_equal(looked(71)->captures, 1);
}

static void capture__without_room_is_none(void **state)
{
	(void)state;
	more_of(&cuda_objects)->hash->refuses = -ENOMEM;
	assert_int_not_equal(cuda_capture_begin(thread_of(71), STREAM, 0), 0);
	assert_int_equal(looked(71)->captures, 0);
}

/* ---- other streams ---- */

static void event__takes_a_stream_into_the_capture(void **state)
{
	(void)state;
	begin(71, STREAM);
	assert_false(is_captured(71, OTHER));
	cuda_event_recorded(thread_of(71), GENERATION, STREAM, EVENT);
	assert_false(is_captured(71, OTHER));
	cuda_event_awaited(thread_of(71), GENERATION, OTHER, EVENT);
	assert_true(is_captured(72, OTHER));
	/* And from there to a third one. */
	cuda_event_recorded(thread_of(71), GENERATION, OTHER, EVENT + 16);
	cuda_event_awaited(thread_of(71), GENERATION, THIRD, EVENT + 16);
	record(72, THIRD, PP_CUDA_NODE_KERNEL, 0);
	record(72, OTHER, PP_CUDA_NODE_KERNEL, 0);
	end(71, STREAM, GRAPH, 0);
	assert_has(GRAPH, PP_CUDA_OBJECT_GRAPH, 2, 0, false);
	assert_false(is_captured(71, OTHER));
	assert_null(object_get(GENERATION, OTHER, PP_CUDA_OBJECT_STREAM));
	/* The next capture is another one. */
	begin(71, STREAM);
	assert_false(is_captured(71, THIRD));
	cuda_event_awaited(thread_of(71), GENERATION, THIRD, EVENT);
	assert_false(is_captured(71, THIRD));
}

static void event__of_a_stream_that_runs_takes_none(void **state)
{
	(void)state;
	begin(71, STREAM);
	cuda_event_recorded(thread_of(71), GENERATION, STREAM, EVENT);
	cuda_event_recorded(thread_of(71), GENERATION, OTHER, EVENT);
	cuda_event_awaited(thread_of(71), GENERATION, THIRD, EVENT);
	assert_false(is_captured(71, THIRD));
}

static void event__takes_no_stream_out_of_its_own_capture(void **state)
{
	(void)state;
	begin(71, STREAM);
	begin(71, OTHER);
	cuda_event_recorded(thread_of(71), GENERATION, STREAM, EVENT);
	cuda_event_awaited(thread_of(71), GENERATION, OTHER, EVENT);
	record(71, OTHER, PP_CUDA_NODE_KERNEL, 0);
	end(71, OTHER, GRAPH, 0);
	assert_has(GRAPH, PP_CUDA_OBJECT_GRAPH, 1, 0, false);
}

/* The first capture of a run as any other. */
static void event__that_is_not_awaited_takes_no_stream(void **state)
{
	(void)state;
	begin(71, STREAM);
	assert_false(is_captured(71, OTHER));
	/* The legacy stream joins no capture. */
	assert_false(is_captured(71, PP_CUDA_STREAM_DEFAULT));
	assert_true(is_captured(71, STREAM));
}

/* ---- graphs ---- */

static void add(uint64_t graph, uint32_t node, uint64_t what)
{
	cuda_node_add(GENERATION, graph, PP_CUDA_OBJECT_GRAPH << 8 | node, what);
}

static struct pp_cuda_totals *row(void)
{
	const struct pp_cuda_totals none = {};
	uint64_t id = ROW;

	bpf_map_update_elem(&cuda_totals, &id, &none, BPF_NOEXIST);
	return bpf_map_lookup_elem(&cuda_totals, &id);
}

static uint64_t run(void)
{
	return cuda_graph_run(ROW, GENERATION, INSTANCE, 1 << PP_GATE_SCALE_SHIFT);
}

static void instance__runs_what_its_graph_had(void **state)
{
	(void)state;
	cuda_graph_made(GENERATION, GRAPH);
	add(GRAPH, PP_CUDA_NODE_KERNEL, 0);
	add(GRAPH, PP_CUDA_NODE_COPY, 30);
	cuda_graph_copied(GENERATION, INSTANCE, PP_CUDA_OBJECT_INSTANCE, GRAPH);
	/* What comes later is none of its. */
	add(GRAPH, PP_CUDA_NODE_KERNEL, 0);
	row();
	assert_int_equal(run(), 30);
	assert_int_equal(run(), 30);
	assert_int_equal(row()->nodes, 2);
	assert_int_equal(row()->unknown, 0);
	/* An update takes all of another graph. */
	cuda_graph_copied(GENERATION, INSTANCE, PP_CUDA_OBJECT_INSTANCE, GRAPH);
	run();
	assert_int_equal(row()->nodes, 4);
	assert_int_equal(host->losses[PP_LOSS_CUDA_GRAPHS_UNKNOWN], 0);
}

/* Launches are counted for a part of the time: of a capture some are missing, and a launch of a
 * graph stands for several. */
static void graph__of_launches_that_are_scaled_may_have_more(void **state)
{
	uint32_t kind = PP_CUDA_HIT_LAUNCH_DEAR;
	struct pp_gate *gate = bpf_map_lookup_elem(&cuda_gates, &kind);

	(void)state;
	row();
	begin(71, STREAM);
	record(71, STREAM, PP_CUDA_NODE_KERNEL, 0);
	gate->until_ns = 1;
	end(71, STREAM, GRAPH, 0);
	assert_has(GRAPH, PP_CUDA_OBJECT_GRAPH, 1, 0, true);
	begin(71, STREAM);
	record(71, STREAM, PP_CUDA_NODE_COPY, 50);
	record(71, STREAM, PP_CUDA_NODE_KERNEL, 0);
	gate->until_ns = 0;
	end(71, STREAM, GRAPH + 16, 0);
	assert_has(GRAPH + 16, PP_CUDA_OBJECT_GRAPH, 1, 50, true);
	cuda_graph_copied(GENERATION, INSTANCE, PP_CUDA_OBJECT_INSTANCE, GRAPH + 16);
	assert_int_equal(cuda_graph_run(ROW, GENERATION, INSTANCE, 4 << PP_GATE_SCALE_SHIFT), 200);
	assert_int_equal(row()->nodes, 4);
	assert_int_equal(row()->unknown, 4);
}

static void graph__has_its_children_and_instances(void **state)
{
	(void)state;
	cuda_graph_made(GENERATION, GRAPH);
	add(GRAPH, PP_CUDA_NODE_KERNEL, 0);
	add(GRAPH, PP_CUDA_NODE_COPY, 7);
	cuda_graph_copied(GENERATION, GRAPH + 16, PP_CUDA_OBJECT_GRAPH, GRAPH);
	add(GRAPH + 16, PP_CUDA_NODE_GRAPH, GRAPH);
	assert_has(GRAPH + 16, PP_CUDA_OBJECT_GRAPH, 2, 14, false);
	cuda_graph_copied(GENERATION, INSTANCE, PP_CUDA_OBJECT_INSTANCE, GRAPH + 16);
	begin(71, STREAM);
	record(71, STREAM, PP_CUDA_NODE_INSTANCE, INSTANCE);
	record(71, STREAM, PP_CUDA_NODE_INSTANCE, INSTANCE);
	end(71, STREAM, GRAPH + 32, 0);
	assert_has(GRAPH + 32, PP_CUDA_OBJECT_GRAPH, 4, 28, false);
}

static void graph__that_may_have_more_is_told(void **state)
{
	(void)state;
	row();
	assert_int_equal(run(), 0);
	assert_int_equal(row()->unknown, 1);
	/* Made before anybody looked. */
	add(GRAPH, PP_CUDA_NODE_KERNEL, 0);
	cuda_graph_copied(GENERATION, INSTANCE, PP_CUDA_OBJECT_INSTANCE, GRAPH);
	run();
	assert_int_equal(row()->unknown, 2);
	/* With a child, an instance or a node that nobody knows. */
	for (uint32_t node = PP_CUDA_NODE_INSTANCE; node <= PP_CUDA_NODE_UNKNOWN; node++) {
		cuda_graph_made(GENERATION, GRAPH);
		add(GRAPH, PP_CUDA_NODE_KERNEL, 0);
		add(GRAPH, node, 0x123);
		assert_has(GRAPH, PP_CUDA_OBJECT_GRAPH, 1, 0, true);
	}
	cuda_graph_copied(GENERATION, INSTANCE, PP_CUDA_OBJECT_INSTANCE, GRAPH + 16);
	run();
	assert_int_equal(row()->unknown, 3);
	assert_int_equal(row()->nodes, 0);
	assert_int_equal(host->losses[PP_LOSS_CUDA_GRAPHS_UNKNOWN], 3);
}

static void handle__that_was_given_back_is_forgotten(void **state)
{
	(void)state;
	cuda_graph_made(GENERATION, GRAPH);
	add(GRAPH, PP_CUDA_NODE_KERNEL, 0);
	cuda_graph_copied(GENERATION, GRAPH, PP_CUDA_OBJECT_INSTANCE, GRAPH);
	cuda_forget(GENERATION, GRAPH, PP_CUDA_OBJECT_GRAPH);
	assert_null(object_get(GENERATION, GRAPH, PP_CUDA_OBJECT_GRAPH));
	/* An instance that had the same number is another thing. */
	assert_has(GRAPH, PP_CUDA_OBJECT_INSTANCE, 1, 0, false);
	begin(71, STREAM);
	end(71, STREAM, GRAPH, 0);
	assert_has(GRAPH, PP_CUDA_OBJECT_GRAPH, 0, 0, false);
}

static void unload__begins_another_life(void **state)
{
	const uint32_t before = changes();

	(void)state;
	assert_int_equal(looked(71)->life, 0);
	cuda_unload(GENERATION, 0x4000);
	assert_int_not_equal(changes(), before);
	assert_int_equal(looked(71)->life, 1);
	assert_int_equal(object_get(GENERATION, 0x4000, PP_CUDA_OBJECT_MODULE)->life, 1);
	cuda_unload(GENERATION, 0);
	assert_int_equal(looked(72)->life, 2);
	assert_int_equal(object_get(GENERATION, 0, PP_CUDA_OBJECT_MODULE)->life, 2);
}

/* ---- layouts ---- */

static uint64_t bytes_of(uint64_t address, uint32_t layout, uint64_t count, uint32_t *ret_way)
{
	uint64_t read = cuda_read_layout(address, layout, count);

	*ret_way = read >> LAYOUT_DIRECTION_SHIFT;
	return read << 8 >> 8;
}

/* Of ncclDataType_t; one that is not known is taken for bytes. */
static void layouts__elements_have_the_sizes_of_nccl_h(void **state)
{
	static const unsigned int sizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
	uint32_t way;

	(void)state;
	for (unsigned int type = 0; type < sizeof(sizes) / sizeof(sizes[0]); type++) {
		assert_int_equal(bytes_of(1000, PP_CUDA_LAYOUT_ELEMENTS, type, &way),
				 1000 * sizes[type]);
		assert_int_equal(way, PP_CUDA_NONE);
	}
	/* The type is an int: what lies above it in the register is not its own. */
	assert_int_equal(bytes_of(1000, PP_CUDA_LAYOUT_ELEMENTS, 7 | 1ULL << 40, &way), 4000);
	assert_int_equal(bytes_of(1000, PP_CUDA_LAYOUT_ELEMENTS, 12, &way), 1000);
	assert_int_equal(bytes_of(1000, PP_CUDA_LAYOUT_ELEMENTS, -1U, &way), 1000);
	assert_int_equal(bytes_of(-1ULL, PP_CUDA_LAYOUT_ELEMENTS, 8, &way) >> 56, 0);
	assert_int_equal(way, PP_CUDA_NONE);
}

static void layouts__are_those_of_cuda_h(void **state)
{
	uint64_t at = heap_take(256);
	uint32_t way;

	(void)state;
	put_word(at + 16, 1);
	put_word(at + 72, 2);
	put_word(at + 112, 640);
	put_word(at + 120, 480);
	assert_int_equal(bytes_of(at, PP_CUDA_LAYOUT_2D, 0, &way), 640 * 480);
	assert_int_equal(way, PP_CUDA_HTOD);
	at = heap_take(256);
	put_word(at + 32, 2);
	put_word(at + 120, 1);
	put_word(at + 176, 100);
	put_word(at + 184, 20);
	put_word(at + 192, 3000);
	assert_int_equal(bytes_of(at, PP_CUDA_LAYOUT_3D, 0, &way), 6000000);
	assert_int_equal(way, PP_CUDA_DTOH);
	at = heap_take(256);
	put_word(at + 128, 100);
	put_word(at + 136, 20);
	put_word(at + 144, 3);
	put_word(at + 152, 2);
	assert_int_equal(bytes_of(at, PP_CUDA_LAYOUT_RUNTIME_3D, 0, &way), 6000);
	assert_int_equal(way, PP_CUDA_DTOH);
	at = heap_take(64);
	put_word(at + 16, 4ULL << 32 | 0xffff);
	put_word(at + 24, 25);
	put_word(at + 32, 2);
	assert_int_equal(bytes_of(at, PP_CUDA_LAYOUT_FILL, 0, &way), 200);
}

static void layouts__sizes_that_cannot_be_are_none(void **state)
{
	static const uint64_t sizes[][3] = {{1ULL << 63, 2, 1},
					    {1ULL << 40, 1ULL << 40, 1},
					    {1ULL << 30, 1ULL << 20, 64},
					    {~0ULL, ~0ULL, ~0ULL}};
	uint64_t at = heap_take(256);
	uint32_t way;

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		put_bytes(at + 176, sizes[i], sizeof(sizes[i]));
		assert_int_equal(bytes_of(at, PP_CUDA_LAYOUT_3D, 0, &way), 0);
	}
	put_word(at + 176, 1ULL << 36); /* all of a large device at once */
	put_word(at + 184, 1);
	put_word(at + 192, 1);
	assert_int_equal(bytes_of(at, PP_CUDA_LAYOUT_3D, 0, &way), 1ULL << 36);
	put_fault(at, 256);
	assert_int_equal(bytes_of(at, PP_CUDA_LAYOUT_3D, 0, &way), 0);
	assert_int_equal(way, PP_CUDA_UNIFIED);
}

static void batch__is_scaled_beyond_what_is_read(void **state)
{
	uint64_t at = heap_take(8 * 100);
	uint32_t way;

	(void)state;
	for (uint32_t i = 0; i < 100; i++)
		put_word(at + 8 * i, 1000 + i);
	assert_int_equal(bytes_of(at, PP_CUDA_LAYOUT_BATCH, 0, &way), 0);
	assert_int_equal(bytes_of(at, PP_CUDA_LAYOUT_BATCH, 3, &way), 3003);
	assert_int_equal(bytes_of(at, PP_CUDA_LAYOUT_BATCH, 32, &way), 32496);
	assert_int_equal(host->losses[PP_LOSS_CUDA_BYTES_GUESSED], 0);
	assert_int_equal(bytes_of(at, PP_CUDA_LAYOUT_BATCH, 64, &way), 2 * 32480);
	assert_int_equal(host->losses[PP_LOSS_CUDA_BYTES_GUESSED], 1);
	assert_int_equal(way, PP_CUDA_UNIFIED);
}

static void nodes__are_of_these_types(void **state)
{
	static const uint32_t nodes[] = {PP_CUDA_NODE_KERNEL, PP_CUDA_NODE_COPY,
					 PP_CUDA_NODE_COPY,   PP_CUDA_NODE_OTHER,
					 PP_CUDA_NODE_GRAPH,  PP_CUDA_NODE_OTHER};
	uint64_t at = heap_take(256);

	(void)state;
	for (uint32_t type = 0; type < 6; type++) {
		put_word(at, type);
		assert_int_equal(cuda_read_node(at), nodes[type]);
	}
	put_word(at, 13);
	assert_int_equal(cuda_read_node(at), PP_CUDA_NODE_UNKNOWN);
	put_word(at, 4);
	put_word(at + 16, GRAPH);
	assert_int_equal(cuda_read_node_what(at, PP_CUDA_NODE_GRAPH), GRAPH);
	put_word(at, 1);
	put_word(at + 32 + 176, 10);
	put_word(at + 32 + 184, 20);
	put_word(at + 32 + 192, 3);
	assert_int_equal(cuda_read_node_what(at, PP_CUDA_NODE_COPY), 600);
	assert_int_equal(cuda_read_node_what(at, PP_CUDA_NODE_KERNEL), 0);
	put_fault(at, 8);
	assert_int_equal(cuda_read_node(at), PP_CUDA_NODE_UNKNOWN);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, host_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(capture__has_the_calls_of_its_stream),
		TEST(capture__of_two_streams_are_two),
		TEST(capture__of_a_threads_own_stream_is_that_threads),
		TEST(capture__into_a_graph_adds_to_it),
		TEST(capture__makes_a_graph_that_has_nothing_else),
		TEST(capture__that_has_ended_is_not_begun_by_a_late_call),
		TEST(capture__that_fails_to_end_goes_on),
		TEST(capture__that_is_invalid_ends_without_a_graph),
		TEST(capture__that_was_not_seen_to_begin_is_told),
		TEST(capture__of_a_process_that_was_forgotten_is_told),
		TEST(capture__that_was_not_seen_to_end_makes_room),
		TEST(capture__ends_with_its_stream),
		TEST(capture__is_not_that_of_another_program),
		TEST(capture__without_room_is_none),
		TEST(event__takes_a_stream_into_the_capture),
		TEST(event__of_a_stream_that_runs_takes_none),
		TEST(event__takes_no_stream_out_of_its_own_capture),
		TEST(event__that_is_not_awaited_takes_no_stream),
		TEST(instance__runs_what_its_graph_had),
		TEST(graph__of_launches_that_are_scaled_may_have_more),
		TEST(graph__has_its_children_and_instances),
		TEST(graph__that_may_have_more_is_told),
		TEST(handle__that_was_given_back_is_forgotten),
		TEST(unload__begins_another_life),
		TEST(layouts__elements_have_the_sizes_of_nccl_h),
		TEST(layouts__are_those_of_cuda_h),
		TEST(layouts__sizes_that_cannot_be_are_none),
		TEST(batch__is_scaled_beyond_what_is_read),
		TEST(nodes__are_of_these_types),
	};

	return cmocka_run_group_tests_name("bpf/cuda_graphs", tests, NULL, NULL);
}
