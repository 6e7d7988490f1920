/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/quotas.h"

#include "agent/incomplete_counts.h"
#include "attach/context_table.h"
#include "attach/file_table.h"
#include "base/log.h"
#include "base/user_quota.h"
#include "drain/incomplete_queue.h"
#include "probes/probes.h"
#include "unwind/row_store.h"

void quotas_count(const struct quotas *quotas, uint64_t loss[PP_LOSS_COUNT])
{
	const struct row_store_quotas rows = row_store_quotas(quotas->rows);
	struct row_store_stats room;
	struct context_table_stats contexts;
	struct file_table_stats files;

	file_table_get_stats(quotas->files, &files);
	loss[PP_LOSS_TEXT_REFUSED] = files.text_refused;
	loss[PP_LOSS_FILES_LOST] = files.lost;
	row_store_get_stats(quotas->rows, &room);
	loss[PP_LOSS_ROWS_FULL] = files.no_space + room.rules_exhausted;
	context_table_get_stats(quotas->contexts, &contexts);
	loss[PP_LOSS_PYTHONS_REFUSED] = contexts.pythons_refused;
	loss[PP_LOSS_PROFILE_REFUSED] = quotas->profiles->refused;
	loss[PP_LOSS_MAP_SETS_REFUSED] = contexts.sets_refused;
	loss[PP_LOSS_ROWS_REFUSED] = rows.rows->refused + rows.rules->refused;
	loss[PP_LOSS_SITES_REFUSED] = probes_refused(quotas->probes);
	loss[PP_LOSS_STACKS_LEFT_OUT] =
		incomplete_queue_quota(quotas->incompletes->queue)->refused +
		quotas->incompletes->left_out;
}

static void tell(struct user_quota *quota, const char *what, const char *counter)
{
	uint32_t uid;

	while (user_quota_tell(quota, &uid))
		log_warn("user %u: %s; the user's share of that table is used up, and others keep "
			 "theirs (%s)",
			 uid, what, counter);
}

void quotas_tell(const struct quotas *quotas)
{
	const struct row_store_quotas rows = row_store_quotas(quotas->rows);

	tell(rows.pages, "more files are mapped and get no unwind rows", "text_refused");
	tell(rows.rows, "unwind rows are not loaded, or dropped", "rows_refused");
	tell(context_table_python_quota(quotas->contexts),
	     "more interpreter files are mapped and get no Python frames", "pythons_refused");
	tell(incomplete_queue_quota(quotas->incompletes->queue),
	     "more stacks are incomplete and stay so", "stacks_left_out");
	tell(quotas->profiles, "stacks are left out of the profiles, and counted without them",
	     "profile_refused");
	tell(quotas->labels, "labels of more processes are left out", "labels_refused");
	tell(context_table_sets_quota(quotas->contexts),
	     "the mappings of more processes find no room, and only the agent can unwind them",
	     "map_sets_refused");
	tell(rows.rules, "code with new unwind rules has none", "rows_refused");
}
