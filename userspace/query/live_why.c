/* SPDX-License-Identifier: BSD-2-Clause */
#include "query/live_why.h"

#include <errno.h>
#include <string.h>

int live_why(const struct live_client *client, int err, const char *said, char text[WHY_BYTES])
{
	text[0] = '\0';
	if (live_client_has_failed(client))
		return err;
	switch (err) {
	case -EREMOTEIO:
		say_why(text, "pyprofd refused: %s", said);
		break;
	case -EPIPE:
		say_why(text, "pyprofd has ended");
		break;
	case -EBADMSG:
		say_why(text, "the answer of pyprofd is damaged or did not come in time");
		break;
	case -E2BIG:
		say_why(text, "the answer of pyprofd is too large");
		break;
	default:
		say_why(text, "%s", strerror(-err));
	}
	return err;
}
