/* SPDX-License-Identifier: BSD-2-Clause */
/* The kernel's part, programs and links, are stand-ins that count what is attached. */
#include "probes/probe_worker.h"

#include <cmocka.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attach/cuda_side.h"
#include "attach/kernel_side.h"
#include "attach/mapping_locks.h"
#include "attach/probe_side.h"
#include "base/budget.h"
#include "base/clock.h"
#include "files/user_time.h"

#define LIMIT_NS 10000000000ULL

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t in_kernel = PTHREAD_MUTEX_INITIALIZER; /* held: links take until then */
static struct {
	int open_err, entry_err, calibrate_err;
	bool lacks_sessions;
	unsigned int attached, attaching, opened, sites_set;
	unsigned int returns_first; /* return links that came before entries */
	bool had_entry;
	/* That were attached, as long as it runs; by the first site. */
	unsigned int entries[3], alloc_links;
	bool is_partial[3];	   /* sites 1 and 2 */
	unsigned int changes_seen; /* links that came or went while site 2, an end, was whole */
	struct pp_gate gate[PP_PROBES_MAX], cuda_gate[PP_CUDA_LAUNCHES];
	uint32_t allocator;
	int cuda_err;
	unsigned int cuda_opened, cuda_links, cuda_sites;
} kernel;

static unsigned int get(const unsigned int *value)
{
	unsigned int now;

	pthread_mutex_lock(&mutex);
	now = *value;
	pthread_mutex_unlock(&mutex);
	return now;
}

static unsigned int greedy; /* a user whose time is used up */
bool user_times_allow(const struct user_times *times, uint32_t uid, uint64_t now_ns)
{
	(void)times, (void)now_ns;
	return !uid || uid != get(&greedy);
}

void user_times_add(struct user_times *times, uint32_t uid, uint64_t used_ns, uint64_t now_ns)
{
	(void)times, (void)uid, (void)used_ns, (void)now_ns;
}

static unsigned int holder; /* of the lock of its mappings */
struct kernel_side_parts kernel_side_parts(const struct kernel_side *side)
{
	(void)side;
	return (struct kernel_side_parts){.locks = 8};
}

int cuda_side_open(const struct kernel_side *of, char *why, size_t why_size,
		   struct cuda_side **ret_side)
{
	(void)of;
	kernel.cuda_opened++;
	if (kernel.cuda_err) {
		strncpy(why, "no program of CUDA", why_size);
		return kernel.cuda_err;
	}
	*ret_side = calloc(1, sizeof(**ret_side));
	(*ret_side)->program = 17;
	(*ret_side)->programs = (*ret_side)->site_now = -1;
	return 0;
}

void cuda_side_free(struct cuda_side *side)
{
	free(side);
}

int cuda_side_set_site(struct cuda_side *side, uint32_t number, const struct pp_site *site)
{
	(void)side, (void)number;
	assert_int_equal(site->does, PP_SITE_CUDA);
	kernel.cuda_sites++;
	kernel.is_partial[number] = site->is_partial;
	return 0;
}

int cuda_side_set_gate(struct cuda_side *side, uint32_t kind, const struct pp_gate *gate)
{
	(void)side;
	pthread_mutex_lock(&mutex);
	kernel.cuda_gate[kind] = *gate;
	pthread_mutex_unlock(&mutex);
	return 0;
}

static uint32_t blind; /* launches are not seen; with the mutex */

static void set_blind(uint32_t is_blind)
{
	pthread_mutex_lock(&mutex);
	blind = is_blind;
	pthread_mutex_unlock(&mutex);
}

/* While all links are still there. */
void cuda_side_go_blind(struct cuda_side *side)
{
	(void)side;
	assert_int_equal(get(&kernel.attached), 2);
	set_blind(1);
}

void cuda_side_see(struct cuda_side *side)
{
	(void)side;
	assert_int_equal(get(&kernel.attached), 2);
	set_blind(0);
}

uint32_t mapping_locks_holder(int link)
{
	assert_int_equal(link, 8);
	return get(&holder);
}

bool probe_links_have_cookies(void)
{
	return true;
}

bool probe_links_can_share(void)
{
	return true;
}

int probe_links_attach(const struct probe_links_options *options, struct probe_links *ret_links)
{
	int err = 0;

	pthread_mutex_lock(&mutex);
	kernel.attaching++;
	pthread_mutex_unlock(&mutex);
	pthread_mutex_lock(&in_kernel);
	pthread_mutex_unlock(&in_kernel);
	pthread_mutex_lock(&mutex);
	kernel.attaching--;
	kernel.changes_seen += !kernel.is_partial[2];
	if (!options->is_return && kernel.entry_err)
		err = kernel.entry_err;
	else
		kernel.attached++;
	kernel.returns_first += options->is_return && !kernel.had_entry;
	kernel.had_entry |= !options->is_return;
	if (!options->is_return)
		kernel.entries[options->site[0].cookie % 3]++;
	kernel.cuda_links += options->program == 17;
	kernel.alloc_links += options->program == 7 && options->is_session;
	pthread_mutex_unlock(&mutex);
	if (!err)
		*ret_links = (struct probe_links){.fd = calloc(1, sizeof(int)), .count = 1};
	return err;
}

void probe_links_release(struct probe_links *links)
{
	pthread_mutex_lock(&mutex);
	kernel.attached -= links->fd != NULL;
	kernel.changes_seen += links->fd && !kernel.is_partial[2];
	pthread_mutex_unlock(&mutex);
	free(links->fd);
	*links = (struct probe_links){};
}

int probe_links_tracepoint(int program, const char *name, uint64_t cookie, int *ret_fd)
{
	(void)program;
	(void)name;
	(void)cookie;
	(void)ret_fd;
	return -ENOENT;
}

int probe_side_open(const struct probe_side_options *options, char *why, size_t why_size,
		    struct probe_side **ret_side)
{
	assert_int_equal(options->blocks_max, 77);
	kernel.opened++;
	if (kernel.open_err) {
		strncpy(why, "no programs", why_size);
		return kernel.open_err;
	}
	*ret_side = malloc(sizeof(**ret_side));
	**ret_side = (struct probe_side){.program = 5,
					 .programs = -1,
					 .tracepoint_program = 6,
					 .alloc_program = 7,
					 .alloc_programs = -1,
					 .site_now = -1,
					 .has_sessions = !kernel.lacks_sessions};
	return 0;
}

void probe_side_free(struct probe_side *side)
{
	free(side);
}

int probe_side_set_gate(struct probe_side *side, uint32_t probe, const struct pp_gate *gate)
{
	(void)side;
	pthread_mutex_lock(&mutex);
	kernel.gate[probe] = *gate;
	pthread_mutex_unlock(&mutex);
	return 0;
}

int probe_side_add_allocator(struct probe_side *side, uint32_t file)
{
	(void)side;
	kernel.allocator = file;
	return 0;
}

struct probe_prices probe_prices_typical(void)
{
	return (struct probe_prices){.hit_ns = {700}, .return_ns = 200};
}

int probe_calibrate(const struct probe_calibration *calibration, struct probe_prices *ret_prices)
{
	assert_true(calibration->program == 5 || calibration->program == 17);
	assert_int_equal(calibration->cookie, 0);
	if (kernel.calibrate_err)
		return kernel.calibrate_err;
	*ret_prices = (struct probe_prices){.hit_ns = {500}, .return_ns = 100, .is_measured = true};
	return 0;
}

int probe_side_set_site(struct probe_side *side, uint32_t number, const struct pp_site *site)
{
	(void)side;
	kernel.sites_set++;
	kernel.is_partial[number] = site->is_partial;
	return 0;
}

int probe_side_get_hits(const struct probe_side *side, struct pp_hits ret_hits[PP_PROBES_MAX])
{
	(void)side;
	ret_hits[0].hits = 3;
	return 0;
}

/* ---- */

static int reset(void **state)
{
	(void)state;
	memset(&kernel, 0, sizeof(kernel));
	return 0;
}

static void start_of(struct probe_worker *worker, uint32_t id, uint32_t uid)
{
	struct probe_job job = {
		.id = id, .file = -1, .pid = 99, .uid = uid, .what = "/lib/x.so", .site_count = 2};

	job.site = calloc(2, sizeof(*job.site));
	assert_non_null(job.site);
	job.site[0].number = 1;
	job.site[1].number = 2;
	job.site[1].is_return = true;
	assert_int_equal(probe_worker_attach(worker, &job), 0);
}

static void start(struct probe_worker *worker, uint32_t id)
{
	start_of(worker, id, 0);
}

static void await_idle(struct probe_worker *worker)
{
	const uint64_t end_ns = mono_ns() + LIMIT_NS;

	while (!probe_worker_is_idle(worker)) {
		assert_true(mono_ns() < end_ns);
		usleep(1000);
	}
}

static void await_attached(unsigned int wanted)
{
	const uint64_t end_ns = mono_ns() + LIMIT_NS;

	while (get(&kernel.attached) != wanted && mono_ns() < end_ns)
		usleep(1000);
	assert_int_equal(get(&kernel.attached), wanted);
}

static struct probe_worker *new_worker(void)
{
	struct probe_worker *worker;

	assert_int_equal(probe_worker_new(NULL, 77, &worker), 0);
	return worker;
}

static void attach__returns_come_first_and_free_takes_all_off(void **state)
{
	OWNED(probe_worker) struct probe_worker *worker = new_worker();
	struct probe_result result;

	(void)state;
	start(worker, 7);
	await_idle(worker);
	assert_true(probe_worker_result(worker, &result));
	assert_int_equal(result.id, 7);
	assert_int_equal(result.err, 0);
	assert_false(probe_worker_result(worker, &result));
	assert_int_equal(get(&kernel.attached), 2);
	assert_int_equal(kernel.returns_first, 1);
	assert_true(kernel.sites_set >= 2);
	probe_worker_free(worker);
	worker = NULL;
	assert_int_equal(kernel.attached, 0);
}

static void start_cuda(struct probe_worker *worker, uint32_t id)
{
	struct probe_job job = {.id = id, .file = -1, .what = "libcuda.so.1", .site_count = 2};

	job.site = calloc(2, sizeof(*job.site));
	assert_non_null(job.site);
	for (uint32_t i = 0; i < 2; i++)
		job.site[i] = (struct probe_worker_site){
			.number = 1 + i, .site.does = PP_SITE_CUDA, .is_return = i, .group = 3};
	assert_int_equal(probe_worker_attach(worker, &job), 0);
}

static void cuda__has_an_object_of_its_own(void **state)
{
	OWNED(probe_worker) struct probe_worker *worker = new_worker();
	struct probe_costs costs;
	struct probe_result result;

	(void)state;
	assert_null(probe_worker_cuda(worker));
	start_cuda(worker, 7);
	await_idle(worker);
	assert_true(probe_worker_result(worker, &result));
	assert_int_equal(result.err, 0);
	assert_int_equal(kernel.opened, 0);
	assert_int_equal(kernel.cuda_opened, 1);
	assert_int_equal(kernel.cuda_links, 2);
	assert_true(kernel.cuda_sites >= 2);
	assert_non_null(probe_worker_cuda(worker));
	assert_int_equal(probe_worker_get_costs(worker, &costs), -EAGAIN);
	start(worker, 8);
	await_idle(worker);
	assert_int_equal(kernel.opened, 1);
	assert_int_equal(kernel.cuda_opened, 1);
	assert_int_equal(get(&kernel.attached), 4);
	probe_worker_detach(worker, 7);
	await_attached(2);
	probe_worker_free(worker);
	worker = NULL;
	assert_int_equal(kernel.attached, 0);
}

static struct pp_gate launch_gate(void)
{
	struct pp_gate gate;

	pthread_mutex_lock(&mutex);
	gate = kernel.cuda_gate[PP_CUDA_HIT_LAUNCH_DEAR];
	pthread_mutex_unlock(&mutex);
	return gate;
}

/* The links of all else stay, and the gate is that of CUDA's object. */
static void cuda__launches_of_a_kind_go_off_alone(void **state)
{
	OWNED(probe_worker) struct probe_worker *worker = new_worker();
	const uint64_t end_ns = mono_ns() + LIMIT_NS;
	struct probe_job job = {.id = 1, .file = -1, .what = "libcuda.so.1", .site_count = 2};
	struct probe_result result;

	(void)state;
	probe_worker_bound_launches(worker, 8);
	job.site = calloc(2, sizeof(*job.site));
	assert_non_null(job.site);
	job.site[0] = (struct probe_worker_site){
		.number = 1, .site.does = PP_SITE_CUDA, .group = 1 + 8 + PP_CUDA_HIT_LAUNCH_DEAR};
	job.site[1] =
		(struct probe_worker_site){.number = 2, .site.does = PP_SITE_CUDA, .group = 1 + 2};
	assert_int_equal(probe_worker_attach(worker, &job), 0);
	await_idle(worker);
	assert_true(probe_worker_result(worker, &result));
	await_attached(2);
	assert_true(probe_worker_get_prices(worker).of.is_measured);
	probe_worker_set_share(worker, 8 + PP_CUDA_HIT_LAUNCH_DEAR, 1, 10000);
	await_attached(1);
	while (launch_gate().until_ns != 1)
		assert_true(mono_ns() < end_ns);
	assert_int_equal(get(&blind), 1);
	probe_worker_set_share(worker, 8 + PP_CUDA_HIT_LAUNCH_DEAR, BUDGET_FULL, 10000);
	await_attached(2);
	while (launch_gate().until_ns || get(&blind))
		assert_true(mono_ns() < end_ns);
	assert_true(probe_worker_on_ns(worker, 8, mono_ns()) >
		    probe_worker_on_ns(worker, 9, mono_ns()));
}

static void cuda__that_cannot_be_loaded_is_told_and_not_tried_again(void **state)
{
	OWNED(probe_worker) struct probe_worker *worker = new_worker();
	struct probe_result result;

	(void)state;
	kernel.cuda_err = -E2BIG;
	for (uint32_t id = 1; id <= 2; id++) {
		start_cuda(worker, id);
		await_idle(worker);
		assert_true(probe_worker_result(worker, &result));
		assert_int_equal(result.err, -E2BIG);
		assert_string_equal(result.why, "no program of CUDA");
	}
	assert_int_equal(kernel.cuda_opened, 1);
	assert_null(probe_worker_cuda(worker));
	start(worker, 3);
	await_idle(worker);
	assert_true(probe_worker_result(worker, &result));
	assert_int_equal(result.err, 0);
}

static void attach__ends_are_not_missed_while_links_come_and_go(void **state)
{
	OWNED(probe_worker) struct probe_worker *worker = new_worker();
	struct probe_result result;

	(void)state;
	start(worker, 7);
	await_idle(worker);
	assert_true(probe_worker_result(worker, &result));
	assert_false(kernel.is_partial[2]);
	probe_worker_detach(worker, 7);
	await_attached(0);
	probe_worker_free(worker);
	worker = NULL;
	assert_false(kernel.is_partial[2]);
	assert_int_equal(kernel.changes_seen, 0);
}

static void detach__of_a_job_whose_result_nobody_took_takes_it_off(void **state)
{
	OWNED(probe_worker) struct probe_worker *worker = new_worker();
	struct probe_result result;

	(void)state;
	start(worker, 7);
	await_idle(worker);
	probe_worker_detach(worker, 7);
	/* The thread has seen that there is nothing to do, and sleeps. */
	usleep(50000);
	assert_true(probe_worker_result(worker, &result));
	await_attached(0);
}

static void detach__of_an_attached_job_leaves_others(void **state)
{
	OWNED(probe_worker) struct probe_worker *worker = new_worker();
	struct probe_result result;

	(void)state;
	start(worker, 7);
	start(worker, 8);
	await_idle(worker);
	while (probe_worker_result(worker, &result))
		;
	probe_worker_detach(worker, 7);
	await_attached(2);
}

static void attach__entries_that_fail_take_returns_off(void **state)
{
	OWNED(probe_worker) struct probe_worker *worker = new_worker();
	struct probe_result result;

	(void)state;
	kernel.entry_err = -EBUSY;
	start(worker, 7);
	await_idle(worker);
	assert_true(probe_worker_result(worker, &result));
	assert_int_equal(result.err, -EBUSY);
	assert_string_equal(result.why, strerror(EBUSY));
	assert_string_equal(result.what, "/lib/x.so");
	assert_int_equal(result.pid, 99);
	assert_int_equal(get(&kernel.attached), 0);
}

static void attach__programs_that_are_refused_are_not_tried_again(void **state)
{
	OWNED(probe_worker) struct probe_worker *worker = new_worker();
	struct probe_costs costs;
	struct probe_result result;

	(void)state;
	kernel.open_err = -EPERM;
	start(worker, 7);
	start(worker, 8);
	await_idle(worker);
	for (unsigned int i = 0; i < 2; i++) {
		assert_true(probe_worker_result(worker, &result));
		assert_int_equal(result.err, -EPERM);
		assert_string_equal(result.why, "no programs");
	}
	assert_int_equal(kernel.opened, 1);
	assert_int_equal(probe_worker_get_costs(worker, &costs), -EAGAIN);
}

static void get_costs__are_those_of_the_programs(void **state)
{
	OWNED(probe_worker) struct probe_worker *worker = new_worker();
	struct probe_costs costs = {};

	(void)state;
	start(worker, 7);
	await_idle(worker);
	assert_int_equal(probe_worker_get_costs(worker, &costs), 0);
	assert_int_equal(costs.hits[0].hits, 3);
}

static struct probe_worker_prices prices_of_run(bool is_bounded)
{
	OWNED(probe_worker) struct probe_worker *worker = new_worker();

	assert_int_equal(probe_worker_get_prices(worker).of.hit_ns[0], 700);
	if (is_bounded)
		probe_worker_bound(worker, 3, 3);
	start(worker, 7);
	await_idle(worker);
	return probe_worker_get_prices(worker);
}

static void get_prices__are_measured_where_a_bound_needs_them(void **state)
{
	struct probe_worker_prices prices = prices_of_run(true);

	(void)state;
	assert_true(prices.of.is_measured);
	assert_int_equal(prices.of.hit_ns[0], 500);
	assert_int_equal(prices.alloc_end_ns, 0);
	prices = prices_of_run(false);
	assert_false(prices.of.is_measured);
	assert_int_equal(prices.of.hit_ns[0], 700);
}

static void get_prices__are_typical_where_the_kernel_refuses(void **state)
{
	struct probe_worker_prices prices;

	(void)state;
	kernel.calibrate_err = -EPERM;
	prices = prices_of_run(true);
	assert_false(prices.of.is_measured);
	assert_int_equal(prices.of.hit_ns[0], 700);
}

static void get_prices__ends_of_allocations_cost_what_a_return_does_without_sessions(void **state)
{
	(void)state;
	kernel.lacks_sessions = true;
	assert_int_equal(prices_of_run(true).alloc_end_ns, 100);
}

static struct pp_gate gate_of(uint32_t probe)
{
	struct pp_gate gate;

	pthread_mutex_lock(&mutex);
	gate = kernel.gate[probe];
	pthread_mutex_unlock(&mutex);
	return gate;
}

/* Probe 0's links go off and on; those that stay do not. */
static void share__puts_links_off_and_on_with_their_gate(void **state)
{
	OWNED(probe_worker) struct probe_worker *worker = new_worker();
	struct probe_job job = {.id = 7, .file = -1, .pid = 99, .site_count = 2, .allocator = 5};
	const uint64_t end_ns = mono_ns() + LIMIT_NS;
	struct pp_gate gate;

	(void)state;
	probe_worker_bound(worker, 0, 0);
	job.site = calloc(2, sizeof(*job.site));
	assert_non_null(job.site);
	job.site[0] = (struct probe_worker_site){
		.number = 1, .group = 1, .site.does = PP_SITE_ALLOC_BEGIN};
	job.site[1] = (struct probe_worker_site){.number = 2};
	assert_int_equal(probe_worker_attach(worker, &job), 0);
	await_attached(2);
	assert_int_equal(kernel.alloc_links, 1);
	assert_int_equal(kernel.allocator, 5);
	probe_worker_set_share(worker, 0, 100000, 500);
	await_attached(1);
	while (gate = gate_of(0), gate.until_ns <= 1 && mono_ns() < end_ns)
		usleep(1000);
	assert_int_equal(gate.until_ns - gate.from_ns, NS_PER_SEC / 10);
	assert_int_equal(gate.scale, 10 << PP_GATE_SCALE_SHIFT);
	assert_in_range(get(&kernel.entries[1]), 2, UINT_MAX);
	assert_int_equal(get(&kernel.entries[2]), 1);
	probe_worker_set_share(worker, 0, BUDGET_FULL, 500);
	await_attached(2);
	while (gate = gate_of(0), gate.until_ns && mono_ns() < end_ns)
		usleep(1000);
	assert_int_equal(gate.until_ns, 0);
}

static void await_result(struct probe_worker *worker, uint32_t id)
{
	const uint64_t end_ns = mono_ns() + LIMIT_NS;
	struct probe_result result = {};

	while (!probe_worker_result(worker, &result)) {
		assert_true(mono_ns() < end_ns);
		usleep(1000);
	}
	assert_int_equal(result.id, id);
}

/* Whose files have a million mappings. */
static void jobs__of_who_has_used_up_his_time_wait_for_others(void **state)
{
	OWNED(probe_worker) struct probe_worker *worker = new_worker();
	uint32_t uid = 0;

	(void)state;
	greedy = 1000;
	start_of(worker, 7, 1000);
	start_of(worker, 8, 1001);
	await_result(worker, 8);
	assert_true(probe_worker_tell_put_off(worker, &uid));
	assert_int_equal(uid, 1000);
	assert_false(probe_worker_tell_put_off(worker, &uid));
	pthread_mutex_lock(&mutex);
	greedy = 0;
	pthread_mutex_unlock(&mutex);
	await_result(worker, 7);
}

static void set_holder(uint32_t tgid)
{
	pthread_mutex_lock(&mutex);
	holder = tgid;
	pthread_mutex_unlock(&mutex);
}

/* Else no process of the machine could fork until he lets go. */
static void links__come_and_go_when_nobody_keeps_a_lock(void **state)
{
	OWNED(probe_worker) struct probe_worker *worker = new_worker();
	uint64_t end_ns = mono_ns() + LIMIT_NS;
	struct probe_result result;
	uint32_t tgid = 0;

	(void)state;
	set_holder(4711);
	start(worker, 7);
	while (!probe_worker_tell_holder(worker, &tgid) && mono_ns() < end_ns)
		usleep(1000);
	assert_int_equal(tgid, 4711);
	assert_false(probe_worker_tell_holder(worker, &tgid));
	assert_int_equal(get(&kernel.attached), 0);
	set_holder(0);
	await_idle(worker);
	assert_int_equal(get(&kernel.attached), 2);
	assert_true(probe_worker_result(worker, &result));
	set_holder(4711);
	probe_worker_detach(worker, 7);
	usleep(100000);
	assert_int_equal(get(&kernel.attached), 2);
	set_holder(0);
	await_attached(0);
}

/* Somebody takes a lock between the worker's look and that at the attaching. */
static void attach__is_tried_again_when_a_lock_is_kept_just_then(void **state)
{
	OWNED(probe_worker) struct probe_worker *worker = new_worker();

	(void)state;
	pthread_mutex_lock(&mutex);
	kernel.entry_err = -EAGAIN;
	pthread_mutex_unlock(&mutex);
	start(worker, 7);
	usleep(50000);
	assert_false(probe_worker_is_idle(worker));
	pthread_mutex_lock(&mutex);
	kernel.entry_err = 0;
	pthread_mutex_unlock(&mutex);
	await_result(worker, 7);
	assert_int_equal(get(&kernel.attached), 2);
}

/* The run's end does not wait for good. */
static void links__are_not_made_at_the_end(void **state)
{
	struct probe_worker *worker = new_worker();

	(void)state;
	set_holder(4711);
	start(worker, 7);
	usleep(50000);
	assert_true(probe_worker_free(worker));
	set_holder(0);
	assert_int_equal(kernel.attached, 0);
	assert_false(kernel.had_entry);
}

/* Nor for a kernel that takes longer.  What the thread uses stays. */
static void free__leaves_a_thread_that_the_kernel_holds_up_and_tells_so(void **state)
{
	static struct probe_worker *worker; /* as long as its thread */

	(void)state;
	worker = new_worker();
	pthread_mutex_lock(&in_kernel);
	start(worker, 7);
	while (!get(&kernel.attaching))
		usleep(1000);
	assert_false(probe_worker_free(worker));
	pthread_mutex_unlock(&in_kernel);
	while (get(&kernel.attaching))
		usleep(1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(attach__returns_come_first_and_free_takes_all_off, reset),
		cmocka_unit_test_setup(cuda__has_an_object_of_its_own, reset),
		cmocka_unit_test_setup(cuda__launches_of_a_kind_go_off_alone, reset),
		cmocka_unit_test_setup(cuda__that_cannot_be_loaded_is_told_and_not_tried_again,
				       reset),
		cmocka_unit_test_setup(attach__ends_are_not_missed_while_links_come_and_go, reset),
		cmocka_unit_test_setup(detach__of_a_job_whose_result_nobody_took_takes_it_off,
				       reset),
		cmocka_unit_test_setup(detach__of_an_attached_job_leaves_others, reset),
		cmocka_unit_test_setup(attach__entries_that_fail_take_returns_off, reset),
		cmocka_unit_test_setup(attach__programs_that_are_refused_are_not_tried_again,
				       reset),
		cmocka_unit_test_setup(get_costs__are_those_of_the_programs, reset),
		cmocka_unit_test_setup(get_prices__are_measured_where_a_bound_needs_them, reset),
		cmocka_unit_test_setup(get_prices__are_typical_where_the_kernel_refuses, reset),
		cmocka_unit_test_setup(
			get_prices__ends_of_allocations_cost_what_a_return_does_without_sessions,
			reset),
		cmocka_unit_test_setup(share__puts_links_off_and_on_with_their_gate, reset),
		cmocka_unit_test_setup(jobs__of_who_has_used_up_his_time_wait_for_others, reset),
		cmocka_unit_test_setup(links__come_and_go_when_nobody_keeps_a_lock, reset),
		cmocka_unit_test_setup(attach__is_tried_again_when_a_lock_is_kept_just_then, reset),
		cmocka_unit_test_setup(links__are_not_made_at_the_end, reset),
		cmocka_unit_test_setup(free__leaves_a_thread_that_the_kernel_holds_up_and_tells_so,
				       reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
