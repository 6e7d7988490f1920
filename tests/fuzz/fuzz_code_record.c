/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: python/python_code.c python/python_objects.c python/python_text.c base/io.c */
#include <stdlib.h>
#include <string.h>

#include "python/python_code.h"

#define FIRST_LAYOUT_BYTES 4U

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_utf8(const char *text)
{
	const uint8_t *at = (const uint8_t *)text;

	while (*at) {
		size_t more = *at < 0x80       ? 0
			      : *at >> 5 == 6  ? 1
			      : *at >> 4 == 14 ? 2
			      : *at >> 3 == 30 ? 3
					       : 9;

		if (more == 9)
			abort();
		for (at++; more; more--, at++) {
			if (*at >> 6 != 2)
				abort();
		}
	}
}

/* Version, flags and one byte of `what`, then a record, whose size is made right half the time. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pp_python layout = {0};
	struct pp_code_record *record;
	struct python_code *code;

	if (size < FIRST_LAYOUT_BYTES + sizeof(*record))
		return 0;
	layout.major = data[0] & 1 ? 2 : 3;
	layout.minor = data[1] & 15;
	layout.flags = data[2];
	layout.code_adaptive = 192;
	size -= FIRST_LAYOUT_BYTES;
	record = malloc(size);
	if (!record)
		return 0;
	memcpy(record, data + FIRST_LAYOUT_BYTES, size);
	record->record.size = (uint32_t)size;
	if (data[3] & 1) {
		uint32_t rest = (uint32_t)(size - sizeof(*record));

		record->name_bytes %= rest + 1;
		record->filename_bytes %= rest - record->name_bytes + 1;
		record->line_table_bytes = rest - record->name_bytes - record->filename_bytes;
		if (record->name_bytes)
			record->name_kind = 1 << record->name_kind % 3;
		if (record->filename_bytes)
			record->filename_kind = 1 << record->filename_kind % 3;
	}
	if (!python_code_from_record(record, &layout, 0, &code)) {
		struct python_code_text text;

		if (!python_code_raw_is_sound(code->raw) ||
		    python_code_text_decode(code->raw, &text))
			abort();
		python_code_set_text(code, &text);
		check_utf8(code->name);
		check_utf8(code->filename);
		for (uint32_t what = 0; what < 1024; what++)
			python_code_line(code, what);
		python_code_line(code, (uint32_t)-1);
		if (python_code_bytes(code) < sizeof(*code))
			abort();
		python_code_free(code);
	}
	free(record);
	return 0;
}
