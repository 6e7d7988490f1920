/* SPDX-License-Identifier: BSD-2-Clause */
#include "symbolize/native_symbols.h"

#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "base/hash.h"

#define FILE_NAME_MAX_BYTES 255U
#define NO_FUNCTION UINT32_MAX

/* All addresses of the file in [low, high) have this answer. */
struct range {
	uint64_t low, high;
	uint32_t function; /* index, or NO_FUNCTION */
};

struct function {
	uint64_t start;
	uint32_t name, system_name; /* offsets in text */
};

/* The text begins with "", then the file's name in brackets. */
#define TEXT_EMPTY 0U
#define TEXT_FILE_NAME 1U

struct cached_file {
	uint32_t id;
	struct range *range; /* owned; sorted, no overlaps */
	size_t range_count, range_capacity;
	struct function *function; /* owned */
	size_t function_count, function_capacity;
	char *text; /* owned */
	size_t text_size, text_capacity;
	uint64_t used_at; /* resolve count */
	bool has_failed;  /* in that round: it could not be asked about */
	uint32_t round;
	UT_hash_handle hh;
};

struct native_symbols {
	struct cached_file *files; /* by id */
	size_t max_bytes, bytes;
	uint64_t resolves;
	struct native_symbols_counters counters;
};

/* ---- memory ---- */

static size_t file_bytes(const struct cached_file *file)
{
	return sizeof(*file) + file->range_capacity * sizeof(*file->range) +
	       file->function_capacity * sizeof(*file->function) + file->text_capacity;
}

static void file_free(struct native_symbols *symbols, struct cached_file *file)
{
	symbols->bytes -= file_bytes(file);
	HASH_DEL(symbols->files, file);
	free(file->range);
	free(file->function);
	free(file->text);
	free(file);
}

int native_symbols_new(size_t max_bytes, struct native_symbols **ret_symbols)
{
	struct native_symbols *symbols = calloc(1, sizeof(*symbols));

	if (!symbols)
		return -ENOMEM;
	symbols->max_bytes = max_bytes;
	*ret_symbols = symbols;
	return 0;
}

void native_symbols_free(struct native_symbols *symbols)
{
	struct cached_file *file, *next;

	if (!symbols)
		return;
	HASH_ITER (hh, symbols->files, file, next) {
		file_free(symbols, file);
	}
	free(symbols);
}

static void drop_least_used(struct native_symbols *symbols)
{
	struct cached_file *oldest = symbols->files;

	for (struct cached_file *file = symbols->files; file; file = file->hh.next)
		if (file->used_at < oldest->used_at)
			oldest = file;
	file_free(symbols, oldest);
	symbols->counters.evicted_files++;
}

/* Makes room for one more element, by doubling, and accounts for it. */
static int reserve(struct native_symbols *symbols, void **array, size_t *capacity, size_t needed,
		   size_t element_bytes)
{
	size_t grown_capacity = *capacity ? *capacity : 8;
	void *grown;

	if (needed <= *capacity)
		return 0;
	while (grown_capacity < needed)
		grown_capacity *= 2;
	grown = realloc(*array, grown_capacity * element_bytes);
	if (!grown)
		return -ENOMEM;
	symbols->bytes += (grown_capacity - *capacity) * element_bytes;
	*array = grown;
	*capacity = grown_capacity;
	return 0;
}

static int add_text(struct native_symbols *symbols, struct cached_file *file, const char *text,
		    size_t size, uint32_t *ret_offset)
{
	int err = reserve(symbols, (void **)&file->text, &file->text_capacity,
			  file->text_size + size + 1, 1);

	if (err)
		return err;
	memcpy(file->text + file->text_size, text, size);
	file->text[file->text_size + size] = '\0';
	*ret_offset = (uint32_t)file->text_size;
	file->text_size += size + 1;
	return 0;
}

static int name_file(struct native_symbols *symbols, struct cached_file *file, const char *path)
{
	char name[FILE_NAME_MAX_BYTES + 3];
	const char *slash = strrchr(path, '/');
	const char *base = slash ? slash + 1 : path;
	uint32_t offset;
	int err, size;

	if (!*base)
		base = "anon";
	if (*base == '[')
		size = snprintf(name, sizeof(name), "%.*s", (int)FILE_NAME_MAX_BYTES, base);
	else
		size = snprintf(name, sizeof(name), "[%.*s]", (int)FILE_NAME_MAX_BYTES, base);
	err = add_text(symbols, file, "", 0, &offset);
	if (err)
		return err;
	return add_text(symbols, file, name, (size_t)size, &offset);
}

static int file_get(struct native_symbols *symbols, const struct native_file *wanted,
		    struct cached_file **ret_file)
{
	struct cached_file *file;
	int err;

	file = HASH_GET(symbols->files, id, wanted->id);
	if (!file)
		return -ENOMEM;
	file->used_at = symbols->resolves;
	if (!file->text) { /* it is new */
		symbols->bytes += sizeof(*file);
		err = name_file(symbols, file, wanted->path);
		if (err) {
			file_free(symbols, file);
			return err;
		}
	}
	*ret_file = file;
	return 0;
}

/* ---- ranges ---- */

static const struct range *find_range(const struct cached_file *file, uint64_t vaddr)
{
	const size_t begun = ARRAY_LEADING(file->range_count, at, file->range[at].low <= vaddr);

	if (!begun || vaddr >= file->range[begun - 1].high)
		return NULL;
	return &file->range[begun - 1];
}

static int compare_ranges(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	return ORDER(x->low, y->low) ?: ORDER(x->high, y->high);
}

/* Sorts ranges and cuts overlaps: answers that share an address are equal. */
static void sort_ranges(struct cached_file *file)
{
	size_t kept = 0;

	if (!file->range_count)
		return;
	qsort(file->range, file->range_count, sizeof(*file->range), compare_ranges);
	for (size_t i = 0; i < file->range_count; i++) {
		struct range range = file->range[i];

		if (kept && range.low < file->range[kept - 1].high)
			range.low = file->range[kept - 1].high;
		if (range.low < range.high)
			file->range[kept++] = range;
	}
	file->range_count = kept;
}

static int add_range(struct native_symbols *symbols, struct cached_file *file, struct range range)
{
	int err = reserve(symbols, (void **)&file->range, &file->range_capacity,
			  file->range_count + 1, sizeof(*file->range));

	if (err)
		return err;
	file->range[file->range_count++] = range;
	return 0;
}

/* ---- scanning ---- */

struct scan {
	struct native_symbols *symbols;
	struct cached_file *file;
	uint64_t high; /* end of the range added last */
	int err;
};

static int add_function(struct native_symbols *symbols, struct cached_file *file,
			const struct foreign_function *found, uint32_t *ret_function)
{
	struct function function = {.start = found->start, .system_name = TEXT_EMPTY};
	int err = reserve(symbols, (void **)&file->function, &file->function_capacity,
			  file->function_count + 1, sizeof(*file->function));

	if (!err && found->system_name[0])
		err = add_text(symbols, file, found->system_name, strlen(found->system_name),
			       &function.system_name);
	if (!err)
		err = add_text(symbols, file, found->name, strlen(found->name), &function.name);
	if (err)
		return err;
	*ret_function = (uint32_t)file->function_count;
	file->function[file->function_count++] = function;
	return 0;
}

static void on_function(void *context, const struct foreign_function *found)
{
	struct scan *scan = context;
	struct cached_file *file = scan->file;
	struct range range = {.low = found->low, .high = found->high, .function = NO_FUNCTION};

	/* Several addresses of the batch may be in one range. */
	if (scan->err || (range.high == scan->high && file->range_count))
		return;
	if (scan->symbols->bytes > 2 * scan->symbols->max_bytes) {
		scan->symbols->counters.dropped_symbols++;
		return;
	}
	if (found->name) {
		scan->err = add_function(scan->symbols, file, found, &range.function);
		if (scan->err)
			return;
	}
	scan->err = add_range(scan->symbols, file, range);
	scan->high = range.high;
}

/* From now on a file that is not ELF, or takes too much work, answers "none". */
static int give_up(struct native_symbols *symbols, struct cached_file *file, int why)
{
	symbols->counters.refused_files += why != -ENOEXEC && why != -EBADMSG;
	file->range_count = 0;
	return add_range(symbols, file,
			 (struct range){.high = UINT64_MAX, .function = NO_FUNCTION});
}

static bool is_bad(int err)
{
	return err == -ENOEXEC || err == -EBADMSG || err == -E2BIG || err == -ENOTSUP ||
	       err == -ETIME;
}

/* missing: sorted. */
static int scan_file(struct native_symbols *symbols, struct cached_file *file,
		     const struct native_file *wanted, const uint64_t *missing, size_t count)
{
	struct scan scan = {.symbols = symbols, .file = file};
	int err;

	symbols->counters.scans++;
	err = wanted->find(wanted->context, wanted, missing, count, on_function, &scan);
	if (err == -ENOMEM || scan.err)
		return err ? err : scan.err;
	if (is_bad(err))
		return give_up(symbols, file, err);
	symbols->counters.open_failures += err != 0;
	file->has_failed = err != 0;
	file->round = wanted->round;
	sort_ranges(file);
	return 0;
}

static int scan_missing(struct native_symbols *symbols, struct cached_file *file,
			const struct native_file *wanted, const uint64_t *vaddr, size_t count)
{
	OWNED_MEM uint64_t *missing = NULL;
	size_t missing_count = 0;

	for (size_t i = 0; i < count; i++) {
		if (find_range(file, vaddr[i])) {
			symbols->counters.cached++;
			continue;
		}
		if (!missing)
			missing = malloc((count - i) * sizeof(*missing));
		if (!missing)
			return -ENOMEM;
		missing[missing_count++] = vaddr[i];
	}
	if (!missing_count || (file->has_failed && file->round == wanted->round))
		return 0;
	qsort(missing, missing_count, sizeof(*missing), order_u64);
	return scan_file(symbols, file, wanted, missing, missing_count);
}

/* ---- the front ---- */

static struct native_symbol answer(const struct cached_file *file, uint64_t vaddr)
{
	const struct range *range = find_range(file, vaddr);
	const struct function *function;

	if (!range || range->function == NO_FUNCTION)
		return (struct native_symbol){.name = file->text + TEXT_FILE_NAME,
					      .system_name = file->text + TEXT_EMPTY};
	function = &file->function[range->function];
	return (struct native_symbol){
		.name = file->text + function->name,
		.system_name = file->text + function->system_name,
		.start = function->start,
		.found = true,
	};
}

int native_symbols_resolve(struct native_symbols *symbols, const struct native_file *file,
			   const uint64_t *vaddr, size_t count, struct native_symbol *ret_symbol)
{
	struct cached_file *cached;
	int err;

	symbols->resolves++;
	symbols->counters.asked += count;
	while (symbols->files && symbols->bytes > symbols->max_bytes)
		drop_least_used(symbols);
	err = file_get(symbols, file, &cached);
	if (err)
		return err;
	err = scan_missing(symbols, cached, file, vaddr, count);
	if (err) {
		/* The file's ranges may be unsorted. */
		file_free(symbols, cached);
		return err;
	}
	for (size_t i = 0; i < count; i++)
		ret_symbol[i] = answer(cached, vaddr[i]);
	return 0;
}

struct native_symbols_counters native_symbols_counters(const struct native_symbols *symbols)
{
	return symbols->counters;
}
