/* SPDX-License-Identifier: BSD-2-Clause */
#include "query/gpu_lines.h"

#include "query/select.h"

void gpu_lines_release(struct gpu_lines *lines)
{
	cuda_lines_free(lines->lines);
	*lines = (struct gpu_lines){0};
}

/* Who the others are is not known: none of them is selected by its pid or name. */
static bool is_selected(const struct select *select, const struct cuda_line *line)
{
	bool is_wanted = !select || !select->pid_count;

	if (!line->pid && select && (select->pid_count || select->comm))
		return false;
	for (unsigned int i = 0; !is_wanted && i < select->pid_count; i++)
		is_wanted = select->pid[i] >= 0 && (uint64_t)select->pid[i] == line->pid;
	return is_wanted &&
	       (!select || !select->comm || !regexec(select->comm, line->comm, 0, NULL, 0));
}

int gpu_lines_add(struct gpu_lines *lines, const char *comment)
{
	struct cuda_line line;
	int err;

	if (!cuda_line_parse(comment, &line) || !is_selected(lines->select, &line))
		return 0;
	err = lines->lines ? 0 : cuda_lines_new(&lines->lines);
	if (err)
		return err;
	lines->has_around |= line.is_around;
	return cuda_lines_add(lines->lines, &line, (uint32_t)line.pid);
}

bool gpu_lines_are_whole(const struct gpu_lines *lines)
{
	const struct select *select = lines->select;

	return !lines->has_around &&
	       (!select || (!select->thread && !select->label_count && !match_asks_stacks(select)));
}
