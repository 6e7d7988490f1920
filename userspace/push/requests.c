/* SPDX-License-Identifier: BSD-2-Clause */
#include "push/requests.h"

#include <stdlib.h>

#include "push/request_writer.h"

void push_requests_release(struct push_requests *requests)
{
	for (uint32_t i = 0; i < requests->count; i++)
		free(requests->request[i].body);
	free(requests->request);
	*requests = (struct push_requests){0};
}

int push_encode(const struct push_encoding *encoding, struct profile *profile,
		const struct push_division *division, const struct push_window *window,
		struct push_requests *ret_requests)
{
	struct push_writer writer = {.encoding = encoding, .window = window};
	int err;

	switch (encoding->protocol) {
	case PUSH_PYROSCOPE:
		err = push_encode_pyroscope(&writer, profile, division);
		break;
	case PUSH_PARCA:
		err = push_encode_parca(&writer, profile, division);
		break;
	default:
		err = push_encode_otlp(&writer, profile, division);
	}
	if (err)
		push_requests_release(&writer.requests);
	*ret_requests = writer.requests;
	return err;
}

const char *push_path(enum push_protocol protocol)
{
	switch (protocol) {
	case PUSH_PYROSCOPE:
		return "/push.v1.PusherService/Push";
	case PUSH_PARCA:
		return "/api/profiles/writeraw";
	default:
		return "/v1development/profiles";
	}
}

const char *push_content_type(enum push_protocol protocol)
{
	switch (protocol) {
	case PUSH_PYROSCOPE:
		return "application/proto"; /* application/x-protobuf is a 415 */
	case PUSH_PARCA:
		return "application/json";
	default:
		return "application/x-protobuf";
	}
}
