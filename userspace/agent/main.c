/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/agent.h"

#include <errno.h>

#include "base/log.h"
#include "doctor/doctor.h"
#include "foreign/child.h"
#include "gauges/child.h"
#include "options/host_check.h"
#include "options/options.h"
#include "parser/child.h"
#include "perf/child.h"
#include "store/merge_child.h"

int main(int argc, char **argv)
{
	CLEANUP(options_release) struct options options = {};
	char why[HOST_WHY_BYTES] = "";
	int err;

	if (parser_child_is_meant(argv[0]))
		parser_child_main();
	if (foreign_child_is_meant(argv[0]))
		foreign_child_main();
	if (perf_child_is_meant(argv[0]))
		perf_child_main();
	if (merge_child_is_meant(argv[0]))
		merge_child_main();
	if (gauges_child_is_meant(argv[0]))
		gauges_child_main();
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
