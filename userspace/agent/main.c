/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/agent.h"

#include <errno.h>

#include "base/log.h"
#include "child/children.h"
#include "child/perf_opener.h"
#include "doctor/doctor.h"
#include "files/child.h"
#include "gauges/child.h"
#include "options/host_check.h"
#include "options/options.h"
#include "peek/child.h"
#include "store/merger.h"

/* This program, started under a child's name, is that child. */
static void be_child(enum child_kind kind)
{
	static void (*const child_main[CHILD_KINDS])(void) = {
		[CHILD_MEMORY] = peek_child_main,   [CHILD_FILES] = foreign_child_main,
		[CHILD_EVENTS] = perf_child_main,   [CHILD_STORE] = merge_child_main,
		[CHILD_GAUGES] = gauges_child_main,
	};

	if (kind < CHILD_KINDS && child_main[kind])
		child_main[kind]();
}

int main(int argc, char **argv)
{
	CLEANUP(options_release) struct options options = {};
	char why[HOST_WHY_BYTES] = "";
	int err;

	be_child(child_named(argv[0]));
	err = options_parse(argc, argv, &options);
	if (err == -ENOMEM) {
		log_error_errno(err, "cannot read the options");
		return OPTIONS_EXIT_FAILURE;
	}
	if (err)
		return err > 0 ? 0 : OPTIONS_EXIT_USAGE;
	log_set_level(options_log_level(&options));
	if (options.doctor)
		return doctor_run(&options, "/proc/self/exe", stdout);
	if (options.config_is_missing)
		log_warn("%s does not exist: the defaults count", OPTIONS_CONFIG_DEFAULT);
	err = host_check(&options, why, sizeof(why));
	if (err) {
		log_error("%s", why);
		return OPTIONS_EXIT_FAILURE;
	}
	if (why[0])
		log_warn("%s", why);
	return agent_run(&options, "/proc/self/exe");
}
