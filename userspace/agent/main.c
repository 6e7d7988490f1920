/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/agent.h"
#include "base/log.h"
#include "options/host_check.h"

int main(int argc, char **argv)
{
	CLEANUP(options_release) struct options options = {};
	char why[HOST_WHY_BYTES] = "";
	int err = options_parse(argc, argv, &options);

	if (err)
		return err > 0 ? 0 : OPTIONS_EXIT_USAGE;
	log_set_level(options.verbose ? LOG_LEVEL_DEBUG :
		      options.quiet   ? LOG_LEVEL_WARN :
					LOG_LEVEL_INFO);
	err = host_check(&options, why, sizeof(why));
	if (err) {
		log_error("%s", why);
		return OPTIONS_EXIT_FAILURE;
	}
	if (why[0])
		log_warn("%s", why);
	return agent_run(&options);
}
