/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile/cuda_line.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define AROUND "around "

/* The numbers of a line, in the order in which they stand there. */
static const struct {
	const char *word;
	size_t offset; /* in struct cuda_line_sums */
} numbers[] = {
	{"calls", offsetof(struct cuda_line_sums, calls)},
	{"captured", offsetof(struct cuda_line_sums, captured)},
	{"nodes", offsetof(struct cuda_line_sums, nodes)},
	{"bytes", offsetof(struct cuda_line_sums, bytes)},
	{"host_ns", offsetof(struct cuda_line_sums, host_ns)},
	{"wait_ns", offsetof(struct cuda_line_sums, wait_ns)},
	{"spread", offsetof(struct cuda_line_sums, spread)},
};

/* Its words. */
static const struct {
	const char *word;
	size_t offset; /* in struct cuda_line */
} words[] = {
	{"comm", offsetof(struct cuda_line, comm)},
	{"device", offsetof(struct cuda_line, device)},
	{"api", offsetof(struct cuda_line, api)},
	{"direction", offsetof(struct cuda_line, direction)},
};

static uint64_t *number_at(struct cuda_line_sums *sums, size_t i)
{
	return (uint64_t *)((char *)sums + numbers[i].offset);
}

static char *word_at(struct cuda_line *line, size_t i)
{
	return (char *)line + words[i].offset;
}

static uint64_t add(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

void cuda_line_sums_add(struct cuda_line_sums *sums, const struct cuda_line_sums *more)
{
	struct cuda_line_sums other = *more;

	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		*number_at(sums, i) = add(*number_at(sums, i), *number_at(&other, i));
	for (size_t i = 0; i < PP_CUDA_HISTOGRAM; i++)
		sums->histogram[i] = add(sums->histogram[i], other.histogram[i]);
}

/* ---- writing ---- */

/* Copies at most size - 1 bytes, whole characters of UTF-8. */
static void set_text(char *to, size_t size, const char *text, unsigned char last_refused)
{
	size_t length = strnlen(text, size);

	if (length == size) {
		length = size - 1;
		while (length && ((unsigned char)text[length] & 0xc0) == 0x80)
			length--;
	}
	memcpy(to, text, length);
	memset(to + length, 0, size - length);
	for (char *at = to; *at; at++)
		if ((unsigned char)*at <= last_refused || *at == 0x7f)
			*at = '_';
}

void cuda_line_set_word(char word[CUDA_LINE_WORD_BYTES], const char *text)
{
	set_text(word, CUDA_LINE_WORD_BYTES, text, ' ');
}

void cuda_line_set_kernel(struct cuda_line *line, const char *text)
{
	set_text(line->kernel, sizeof(line->kernel), text, ' ' - 1);
}

/* What is left of a line's buffer, which has room for the longest one. */
struct room {
	char *at, *end;
};

__attribute__((format(printf, 2, 3))) static void append(struct room *room, const char *format, ...)
{
	va_list arguments;
	int size;

	va_start(arguments, format);
	size = vsnprintf(room->at, (size_t)(room->end - room->at), format, arguments);
	va_end(arguments);
	if (size > 0)
		room->at += size < room->end - room->at ? size : room->end - room->at - 1;
}

static void append_histogram(struct room *room, const struct cuda_line_sums *sums)
{
	const char *before = "";

	append(room, " hist=");
	for (unsigned int i = 0; i < PP_CUDA_HISTOGRAM; i++) {
		if (!sums->histogram[i])
			continue;
		append(room, "%s%u:%" PRIu64, before, i, sums->histogram[i]);
		before = ",";
	}
	if (!before[0])
		append(room, "-");
}

void cuda_line_format(const struct cuda_line *line, char text[CUDA_LINE_CHARS])
{
	struct room room = {.at = text, .end = text + CUDA_LINE_CHARS};
	struct cuda_line own = *line;

	append(&room, CUDA_LINE_PREFIX "%s", line->is_around ? AROUND : "");
	if (line->pid)
		append(&room, "pid=%" PRIu64, line->pid);
	else
		append(&room, "others=%" PRIu64, line->others);
	for (size_t i = 0; i < ARRAY_SIZE(words) && line->pid; i++)
		append(&room, " %s=%s", words[i].word,
		       word_at(&own, i)[0] ? word_at(&own, i) : "-");
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		append(&room, " %s=%" PRIu64, numbers[i].word, *number_at(&own.sums, i));
	append_histogram(&room, &line->sums);
	if (line->pid)
		append(&room, " kernel=%s", line->kernel);
}

/* ---- reading ---- */

/* Reads digits at *at. */
static bool read_number(const char **at, uint64_t *ret_number)
{
	char *end;

	if (**at < '0' || **at > '9')
		return false;
	errno = 0;
	*ret_number = strtoull(*at, &end, 10);
	*at = end;
	return !errno;
}

/* Reads a number that is all of a value. */
static bool read_whole(const char *value, size_t size, uint64_t *ret_number)
{
	const char *at = value;

	return read_number(&at, ret_number) && at == value + size;
}

/* Reads "3:17,4:2" or "-". */
static bool read_histogram(const char *value, size_t size, struct cuda_line_sums *sums)
{
	const char *at = value, *end = value + size;
	uint64_t bucket, count;

	memset(sums->histogram, 0, sizeof(sums->histogram));
	if (size == 1 && *value == '-')
		return true;
	for (;; at++) {
		if (!read_number(&at, &bucket) || bucket >= PP_CUDA_HISTOGRAM || *at++ != ':' ||
		    !read_number(&at, &count))
			return false;
		sums->histogram[bucket] = count;
		if (at == end)
			return true;
		if (*at != ',')
			return false;
	}
}

static bool read_word(const char *value, size_t size, char word[CUDA_LINE_WORD_BYTES])
{
	char text[CUDA_LINE_WORD_BYTES];

	if (size >= sizeof(text))
		return false;
	memcpy(text, value, size);
	text[size] = '\0';
	cuda_line_set_word(word, strcmp(text, "-") ? text : "");
	return true;
}

static bool is_called(const char *word, size_t size, const char *name)
{
	return strlen(name) == size && !strncmp(word, name, size);
}

/* Takes a field that is none of the first.  Returns false when its value is none of it. */
static bool read_field(const char *word, size_t word_size, const char *value, size_t size,
		       struct cuda_line *line)
{
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		if (is_called(word, word_size, numbers[i].word))
			return read_whole(value, size, number_at(&line->sums, i));
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (is_called(word, word_size, words[i].word))
			return read_word(value, size, word_at(line, i));
	if (is_called(word, word_size, "hist"))
		return read_histogram(value, size, &line->sums);
	return true;
}

/* Reads "pid=12" or "others=44". */
static bool read_who(const char **at, struct cuda_line *line)
{
	uint64_t *number = &line->pid;

	if (!strncmp(*at, "others=", strlen("others="))) {
		number = &line->others;
		*at += strlen("others=");
	} else if (!strncmp(*at, "pid=", strlen("pid="))) {
		*at += strlen("pid=");
	} else {
		return false;
	}
	return read_number(at, number) && (number != &line->pid || line->pid);
}

static bool read_fields(const char *at, struct cuda_line *line)
{
	while (*at == ' ') {
		const char *word = ++at, *equals = word + strcspn(word, "= ");
		const size_t size = *equals == '=' ? strcspn(equals + 1, " ") : 0;

		if (*equals != '=')
			return false;
		if (is_called(word, (size_t)(equals - word), "kernel")) {
			cuda_line_set_kernel(line, equals + 1);
			return line->pid;
		}
		if (!read_field(word, (size_t)(equals - word), equals + 1, size, line))
			return false;
		at = equals + 1 + size;
	}
	return !*at;
}

bool cuda_line_is(const char *comment)
{
	return !strncmp(comment, CUDA_LINE_PREFIX, strlen(CUDA_LINE_PREFIX));
}

bool cuda_line_parse(const char *comment, struct cuda_line *ret_line)
{
	struct cuda_line line = {0};

	if (!cuda_line_is(comment))
		return false;
	comment += strlen(CUDA_LINE_PREFIX);
	line.is_around = !strncmp(comment, AROUND, strlen(AROUND));
	if (line.is_around)
		comment += strlen(AROUND);
	if (!read_who(&comment, &line) || !read_fields(comment, &line) ||
	    (line.pid && !line.api[0]))
		return false;
	/* What sums up others is of nobody. */
	for (size_t i = 0; i < ARRAY_SIZE(words) && !line.pid; i++)
		word_at(&line, i)[0] = '\0';
	*ret_line = line;
	return true;
}

/* ---- times ---- */

uint64_t cuda_line_bucket_ns(unsigned int bucket)
{
	return bucket ? 1ULL << (bucket + PP_CUDA_HISTOGRAM_SHIFT) : 0;
}

static double bucket_end(unsigned int bucket)
{
	return bucket ? 2.0 * (double)cuda_line_bucket_ns(bucket) : (double)cuda_line_bucket_ns(1);
}

double cuda_line_quantile(const struct cuda_line_sums *sums, double quantile)
{
	double all = 0, below = 0, rank;

	for (unsigned int i = 0; i < PP_CUDA_HISTOGRAM; i++)
		all += (double)sums->histogram[i];
	rank = quantile * all;
	for (unsigned int i = 0; i < PP_CUDA_HISTOGRAM; i++) {
		const double in = (double)sums->histogram[i];
		const double begin = (double)cuda_line_bucket_ns(i), end = bucket_end(i);
		double part, ns;

		below += in;
		if (in <= 0 || below < rank)
			continue;
		part = 1 - (below - rank) / in;
		ns = i ? begin * pow(end / begin, part) : end * part;
		return fmin(ns, fmax((double)sums->host_ns, begin));
	}
	return NAN;
}

double cuda_line_unevenness(const struct cuda_line_sums *sums)
{
	double all = 0, mean = 0, square = 0;

	for (unsigned int i = 0; i < PP_CUDA_HISTOGRAM; i++) {
		const double begin = (double)cuda_line_bucket_ns(i), end = bucket_end(i);
		const double count = (double)sums->histogram[i], middle = (begin + end) / 2;

		all += count;
		mean += count * middle;
		square += count * middle * middle;
	}
	return mean > 0 ? fmax(square * all / (mean * mean), 1) : 1;
}
