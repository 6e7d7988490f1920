/* SPDX-License-Identifier: BSD-2-Clause */
#include "probes/probe_wants.h"

#include "attach/file_table.h"
#include "files/client.h"

#define FILE_NUMBER UINT32_MAX /* no file of the table has it */

static void want_line(struct probe_wants *wants)
{
	if (wants->count + 2 > PROBE_WANTED_MAX)
		return;
	wants->wanted[wants->count] = (struct probe_wanted){
		.kind = PROBE_WANTED_USDT, .provider = "python", .name = PROBE_LINE_NAME};
	wants->wanted[wants->count + 1] =
		(struct probe_wanted){.kind = PROBE_WANTED_FUNCTION, .name = PROBE_CARRIER_NAME};
	wants->count += 2;
}

static void add_row(const struct probe_plan *plan, uint32_t row, struct probe_wants *wants)
{
	const struct probe_row *probe = &plan->row[row];

	for (uint32_t leg = 0; leg < probe->leg_count && wants->count < PROBE_WANTED_MAX; leg++) {
		wants->wanted[wants->count] = probe->leg[leg].wanted;
		wants->of[wants->count].row = row;
		wants->of[wants->count++].leg = leg;
	}
}

void probe_wants_row(const struct probe_plan *plan, uint32_t row, struct probe_wants *wants)
{
	add_row(plan, row, wants);
	wants->row_count = wants->count;
}

/* Asked about each file of each process whose mappings change: the many rows of CUDA's functions,
 * which stand one after the other, are of the same files. */
static bool is_as_row_before(const struct probe_plan *plan, uint32_t row)
{
	return row && probe_row_is_of_cuda(&plan->row[row]) &&
	       plan->row[row].place == plan->row[row - 1].place;
}

bool probe_wants_any(const struct probe_plan *plan, const struct file *file)
{
	for (uint32_t row = 0; row < plan->count; row++)
		if (!is_as_row_before(plan, row) &&
		    probe_row_is_in(&plan->row[row], file->path, file->python != NULL))
			return true;
	return false;
}

void probe_wants_list(const struct probe_plan *plan, const struct file *file,
		      struct probe_wants *wants)
{
	const struct pp_python *python = file->python ? &file->python->bpf : NULL;
	bool needs_line = false;

	for (uint32_t row = 0; row < plan->count; row++) {
		const struct probe_row *probe = &plan->row[row];

		if (!probe_row_is_in(probe, file->path, python != NULL))
			continue;
		add_row(plan, row, wants);
		needs_line |= probe_row_needs_line(probe);
	}
	wants->row_count = wants->count;
	if (needs_line && python && python->major == 3 && python->minor == 11)
		want_line(wants);
}

void probe_wants_list_path(const struct probe_plan *plan, const char *path,
			   struct probe_wants *wants)
{
	for (uint32_t row = 0; row < plan->count; row++)
		if (plan->row[row].place != PROBE_IN_ANY &&
		    !probe_row_needs_line(&plan->row[row]) &&
		    probe_row_is_in(&plan->row[row], path, true))
			add_row(plan, row, wants);
	wants->row_count = wants->count;
}

static int descriptor(void *context, int *ret_fd)
{
	*ret_fd = *(const int *)context;
	return 0;
}

int probe_wants_ask(struct foreign *foreign, int fd, const struct probe_wants *wants,
		    struct probe_sites *ret_sites)
{
	const struct foreign_file file = {
		.number = FILE_NUMBER, .descriptor = descriptor, .context = &fd};
	int err = foreign_probes(foreign, &file, wants->wanted, wants->count, ret_sites);

	foreign_close(foreign, FILE_NUMBER);
	return err;
}
