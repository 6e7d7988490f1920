/* SPDX-License-Identifier: BSD-2-Clause */
#include "timeline/trace_file.h"

#include <cmocka.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

#include "base/clock.h"
#include "base/io.h"

#define MIB (1U << 20)

static char directory[] = "/tmp/pyprofd-trace.XXXXXX";
static char path[64];

static int set_up(void **state)
{
	(void)state;
	strcpy(strrchr(directory, '.'), ".XXXXXX");
	if (!mkdtemp(directory))
		return -1;
	snprintf(path, sizeof(path), "%s/t", directory);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(directory);
}

static struct trace_file *open_it(uint64_t max_bytes, bool gzip)
{
	const struct trace_file_options options = {.path = path,
						   .max_bytes = max_bytes,
						   .gzip = gzip,
						   .uid = (uid_t)-1,
						   .gid = (gid_t)-1};
	struct trace_file *file;

	assert_int_equal(trace_file_open(&options, &file), 0);
	return file;
}

static void trace_file__ends_below_its_bound_with_room_for_the_end(void **state)
{
	static char block[1000];
	struct trace_file *file = open_it(MIB, false);
	uint64_t bytes = 0;
	struct stat stat_of;
	int err;

	(void)state;
	while (!(err = trace_file_put(file, block, sizeof(block))))
		bytes += sizeof(block);
	assert_int_equal(err, -EFBIG);
	assert_in_range(bytes, MIB - MIB / 16 - 2000, MIB - MIB / 16);
	trace_file_end(file);
	while (!(err = trace_file_put(file, block, sizeof(block))))
		bytes += sizeof(block);
	assert_int_equal(err, -EFBIG);
	assert_in_range(bytes, MIB - 2000, MIB - TRACE_LAST_BYTES);
	assert_int_equal(trace_file_put_last(file, "\n]\n", 3), 0);
	assert_int_equal(trace_file_close(file), 0);
	trace_file_free(file);
	assert_int_equal(stat(path, &stat_of), 0);
	assert_int_equal(stat_of.st_size, bytes + 3);
	assert_int_equal(stat_of.st_mode & 0777, 0640);
}

static void trace_file__flushed_gzip_can_be_read_before_it_ends(void **state)
{
	struct trace_file *file = open_it(MIB, true);
	char got[16] = "";
	gzFile reader;

	(void)state;
	assert_int_equal(trace_file_put(file, "first", 5), 0);
	assert_int_equal(trace_file_flush(file), 0);
	for (uint64_t until_ns = mono_ns() + 20 * NS_PER_SEC; !got[0];) {
		assert_true(mono_ns() < until_ns);
		reader = gzopen(path, "rb");
		assert_non_null(reader);
		(void)gzread(reader, got, 5);
		gzclose(reader);
	}
	assert_string_equal(got, "first");
	assert_int_equal(trace_file_put(file, " second", 7), 0);
	assert_int_equal(trace_file_close(file), 0);
	trace_file_free(file);
	reader = gzopen(path, "rb");
	assert_int_equal(gzread(reader, got, sizeof(got)), 12);
	assert_string_equal(got, "first second");
	gzclose(reader);
}

static void trace_file__piece_larger_than_the_buffer_is_written(void **state)
{
	OWNED_MEM char *block = malloc(600000), *text = NULL;
	struct trace_file *file = open_it(MIB, false);
	size_t size;

	(void)state;
	assert_non_null(block);
	memset(block, 'x', 600000);
	assert_int_equal(trace_file_put(file, "a", 1), 0);
	assert_int_equal(trace_file_put(file, block, 600000), 0);
	assert_int_equal(trace_file_put(file, "b", 1), 0);
	assert_int_equal(trace_file_close(file), 0);
	trace_file_free(file);
	assert_int_equal(read_file(path, MIB, &text, &size), 0);
	assert_int_equal(size, 600002);
	assert_int_equal(text[0], 'a');
	assert_int_equal(text[600001], 'b');
}

static void trace_file__what_is_no_file_is_left_alone(void **state)
{
	const struct trace_file_options fifo = {.path = path, .max_bytes = MIB};
	struct trace_file *file;

	(void)state;
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(trace_file_open(&fifo, &file), -EINVAL);
	unlink(path);
	assert_int_equal(symlink("/dev/null", path), 0);
	assert_int_equal(trace_file_open(&fifo, &file), -ELOOP);
}

#define FILE_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		FILE_TEST(trace_file__ends_below_its_bound_with_room_for_the_end),
		FILE_TEST(trace_file__flushed_gzip_can_be_read_before_it_ends),
		FILE_TEST(trace_file__piece_larger_than_the_buffer_is_written),
		FILE_TEST(trace_file__what_is_no_file_is_left_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
