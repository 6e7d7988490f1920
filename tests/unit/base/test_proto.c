/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/proto.h"

#include <cmocka.h>
#include <string.h>

#include "base/cleanup.h"

/* A message of 127 bytes has a length of one byte; of 128, two: what is in it moves. */
static void proto_close__length_is_as_short_as_it_can_be(void **state)
{
	static const size_t size[] = {125, 126, 16380, 16381};
	static const size_t written[] = {1 + 1 + 127, 1 + 2 + 128, 1 + 2 + 16383, 1 + 3 + 16384};
	uint8_t text[16384];

	(void)state;
	memset(text, 'x', sizeof(text));
	for (size_t i = 0; i < ARRAY_SIZE(size); i++) {
		CLEANUP(proto_release) struct proto_writer proto = {0};
		struct wire_field outer, inner;
		struct wire wire;

		proto_open(&proto, 3);
		proto_bytes(&proto, 7, text, size[i]);
		proto_close(&proto);
		assert_int_equal(proto.error, 0);
		assert_int_equal(proto.size, written[i]);
		wire = (struct wire){proto.byte, proto.byte + proto.size};
		assert_int_equal(wire_next(&wire, &outer), 1);
		assert_int_equal(outer.number, 3);
		assert_int_equal(wire_next(&outer.bytes, &inner), 1);
		assert_int_equal(inner.number, 7);
		assert_int_equal(inner.bytes.end - inner.bytes.at, size[i]);
		assert_memory_equal(inner.bytes.at, text, size[i]);
		assert_int_equal(wire_next(&outer.bytes, &inner), 0);
		assert_int_equal(wire_next(&wire, &outer), 0);
	}
}

static void proto__numbers_come_back_and_zeros_are_left_out(void **state)
{
	CLEANUP(proto_release) struct proto_writer proto = {0};
	uint64_t one = 1, most = 1, always = 1, fixed = 1;
	uint64_t *const place[] = {NULL, &one, &most, &always, &fixed};

	(void)state;
	proto_uint(&proto, 1, 0);
	assert_int_equal(proto.size, 0);
	proto_uint(&proto, 2, UINT64_MAX);
	proto_uint_always(&proto, 3, 0);
	proto_fixed64(&proto, 4, 0x0102030405060708);
	assert_int_equal(wire_numbers((struct wire){proto.byte, proto.byte + proto.size}, place,
				      ARRAY_SIZE(place)),
			 0);
	assert_int_equal(one, 1);
	assert_true(most == UINT64_MAX);
	assert_int_equal(always, 0);
	assert_true(fixed == 0x0102030405060708);
}

static void wire_next__cut_off_anywhere_is_ebadmsg(void **state)
{
	CLEANUP(proto_release) struct proto_writer proto = {0};

	(void)state;
	proto_fixed64(&proto, 400, 5);
	for (size_t size = 1; size < proto.size; size++) {
		struct wire wire = {proto.byte, proto.byte + size};
		struct wire_field field;

		assert_int_equal(wire_next(&wire, &field), -EBADMSG);
	}
	proto.size = 0;
	proto_bytes(&proto, 400, "text", 4);
	for (size_t size = 1; size < proto.size; size++) {
		struct wire wire = {proto.byte, proto.byte + size};
		struct wire_field field;

		assert_int_equal(wire_next(&wire, &field), -EBADMSG);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(proto_close__length_is_as_short_as_it_can_be),
		cmocka_unit_test(proto__numbers_come_back_and_zeros_are_left_out),
		cmocka_unit_test(wire_next__cut_off_anywhere_is_ebadmsg),
	};

	return cmocka_run_group_tests_name("base/proto", tests, NULL, NULL);
}
