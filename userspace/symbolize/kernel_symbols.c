/* SPDX-License-Identifier: BSD-2-Clause */
#include "symbolize/kernel_symbols.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/io.h"

#define MODULES_MAX_BYTES (1U << 20)
#define PATH_MAX_BYTES 256U
/* Several of the kernel's answers (at most a page each), so that few lines are split and moved. */
#define READ_BYTES (1U << 15)

/* Addresses that share their upper 32 bits: symbols from `first` to the next region's `first`. */
struct region {
	uint32_t high;
	uint32_t first;
};

struct kernel_symbols {
	const char *proc;
	bool is_loaded;
	uint64_t modules_hash; /* of /proc/modules when the table was loaded */
	/* Columns of the table, each owned, sorted by address. */
	uint32_t *low;	  /* lower 32 bits of the address */
	uint32_t *name;	  /* offset in names */
	uint16_t *module; /* index */
	size_t count;
	struct region *region; /* owned */
	size_t region_count, region_capacity;
	char *names; /* owned; symbols' and modules' */
	size_t names_size;
	uint32_t *module_name; /* owned; offset in names; 0: the kernel */
	size_t module_count;
	struct load *load; /* owned; while the file is read. NULL: it is not */
};

static void load_free(struct load *load);
DEFINE_OWNED(struct load, load)

void kernel_symbols_forget(struct kernel_symbols *symbols)
{
	free(symbols->low);
	free(symbols->name);
	free(symbols->module);
	free(symbols->region);
	free(symbols->names);
	free(symbols->module_name);
	load_free(symbols->load);
	*symbols = (struct kernel_symbols){.proc = symbols->proc};
}

int kernel_symbols_new(const char *proc, struct kernel_symbols **ret_symbols)
{
	struct kernel_symbols *symbols = calloc(1, sizeof(*symbols));

	if (!symbols)
		return -ENOMEM;
	symbols->proc = proc;
	*ret_symbols = symbols;
	return 0;
}

void kernel_symbols_free(struct kernel_symbols *symbols)
{
	if (!symbols)
		return;
	kernel_symbols_forget(symbols);
	free(symbols);
}

/* ---- reading ---- */

struct raw_symbol {
	uint64_t address;
	uint32_t name;
	uint16_t module;
	char type;
};

/* What a load fills; it becomes the table when the load succeeds. */
struct load {
	struct raw_symbol *symbol;
	size_t count, capacity;
	char *names;
	size_t names_size, names_capacity;
	uint32_t *module_name;
	size_t module_count;
	bool has_address; /* some symbol has an address; otherwise the kernel hides them */
	/* Where the reading is. */
	uint64_t modules_hash; /* from before it began */
	int fd;
	char *buffer;	    /* owned; READ_BYTES */
	size_t buffer_size; /* of it: a line that is not whole */
};

static void load_free(struct load *load)
{
	if (!load)
		return;
	close_owned_fd(&load->fd);
	free(load->symbol);
	free(load->names);
	free(load->module_name);
	free(load->buffer);
	free(load);
}

static int add_name(struct load *load, const char *name, uint32_t *ret_offset)
{
	const size_t size = strlen(name) + 1;

	if (load->names_size + size > KERNEL_NAMES_MAX_BYTES)
		return -EFBIG;
	if (load->names_size + size > load->names_capacity) {
		const size_t capacity = load->names_capacity + (1U << 19) + size;
		char *grown = realloc(load->names, capacity);

		if (!grown)
			return -ENOMEM;
		load->names = grown;
		load->names_capacity = capacity;
	}
	memcpy(load->names + load->names_size, name, size);
	*ret_offset = (uint32_t)load->names_size;
	load->names_size += size;
	return 0;
}

/* kallsyms lists a module's symbols together, so only the last one is compared. */
static int get_module(struct load *load, const char *name, uint16_t *ret_index)
{
	uint32_t offset;
	int err;

	if (!*name) {
		*ret_index = 0;
		return 0;
	}
	if (!strcmp(load->names + load->module_name[load->module_count - 1], name)) {
		*ret_index = (uint16_t)(load->module_count - 1);
		return 0;
	}
	if (load->module_count == KERNEL_MODULES_MAX)
		return -EFBIG;
	err = add_name(load, name, &offset);
	if (err)
		return err;
	load->module_name[load->module_count] = offset;
	*ret_index = (uint16_t)load->module_count++;
	return 0;
}

static int add_symbol(struct load *load, uint64_t address, char type, const char *name,
		      const char *module)
{
	struct raw_symbol symbol = {.address = address, .type = type};
	int err;

	if (load->count == KERNEL_SYMBOLS_MAX)
		return -EFBIG;
	err = ARRAY_RESERVE(load->symbol, load->count, load->capacity);
	if (!err)
		err = get_module(load, module, &symbol.module);
	if (!err)
		err = add_name(load, name, &symbol.name);
	if (err)
		return err;
	load->symbol[load->count++] = symbol;
	return 0;
}

static bool is_code(char type)
{
	return type == 't' || type == 'T' || type == 'w' || type == 'W';
}

/* Returns whether a symbol (__pfx_, __cfi_) names padding, in which no code runs. */
static bool is_padding(const char *name)
{
	return name[0] == '_' && name[1] == '_' &&
	       (!strncmp(name, "__pfx_", 6) || !strncmp(name, "__cfi_", 6));
}

/* Reads a number and returns what follows its digits. */
static char *read_hex(char *text, uint64_t *ret_value)
{
	uint64_t value = 0;

	for (;; text++) {
		const unsigned int c = (unsigned char)*text;

		if (c - '0' < 10)
			value = value << 4 | (c - '0');
		else if ((c | 0x20) - 'a' < 6)
			value = value << 4 | ((c | 0x20) - 'a' + 10);
		else
			break;
	}
	*ret_value = value;
	return text;
}

/* Reads "ffffffff81000000 T _stext" or "ffffffffc0000000 t nft_init<tab>[nf_tables]".  Half of some
 * 100,000 lines are not needed: those are rejected as early as possible. */
static int read_line(struct load *load, char *line)
{
	char *name, *module, type;
	uint64_t address;
	char *end = read_hex(line, &address);

	if (end == line || end[0] != ' ' || !end[1] || end[2] != ' ')
		return 0;
	if (address)
		load->has_address = true;
	type = end[1];
	name = end + 3;
	if (!address || !is_code(type) || is_padding(name))
		return 0;
	module = name + strcspn(name, " \t");
	if (module == name)
		return 0;
	if (*module) {
		*module++ = '\0';
		module += strcspn(module, "[");
		module += *module == '[';
		module[strcspn(module, "]")] = '\0';
	}
	return add_symbol(load, address, type, name, module);
}

/* Reads all complete lines of the buffer, and moves the rest to its beginning. */
static int take_lines(struct load *load, char *buffer, size_t *size)
{
	char *line = buffer, *const end = buffer + *size, *newline;
	int err = 0;

	while (!err && (newline = memchr(line, '\n', (size_t)(end - line)))) {
		*newline = '\0';
		err = read_line(load, line);
		line = newline + 1;
	}
	*size = (size_t)(end - line);
	memmove(buffer, line, *size);
	return err;
}

/* Returns 1 when the slice was over before the file. */
static int read_lines(struct load *load, const struct slice *slice)
{
	char *const buffer = load->buffer;
	int err = 0;

	while (!err) {
		size_t size = load->buffer_size;
		ssize_t got = read(load->fd, buffer + size, READ_BYTES - 1 - size);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		size += (size_t)got;
		if (!got && !size)
			return 0;
		if (!got)
			buffer[size++] = '\n';
		err = take_lines(load, buffer, &size);
		load->buffer_size = size;
		if (!err && size == READ_BYTES - 1)
			err = -EFBIG;
		if (!err && slice_is_over(slice))
			return 1;
	}
	return err;
}

/* ---- the table ---- */

static int type_rank(char type)
{
	return type == 'T' ? 0 : type == 't' ? 1 : 2;
}

/* Sorts by address; the best name of an address comes first. */
static int compare_symbols(const void *a, const void *b, void *context)
{
	const struct raw_symbol *x = a, *y = b;
	const char *names = context;

	return ORDER(x->address, y->address)
		       ?: type_rank(x->type) - type_rank(y->type)
		       ?: ORDER(strspn(names + x->name, "_"), strspn(names + y->name, "_"))
		       ?: ORDER(x->name, y->name);
}

/* Without modules the kernel lists by address, so that only the names of each address need
 * sorting. */
static void sort_symbols(struct load *load)
{
	struct raw_symbol *symbol = load->symbol;
	size_t first = 0;

	for (size_t i = 1; i < load->count; i++) {
		if (symbol[i].address < symbol[i - 1].address) {
			qsort_r(symbol, load->count, sizeof(*symbol), compare_symbols, load->names);
			return;
		}
	}
	for (size_t i = 1; i <= load->count; i++) {
		if (i < load->count && symbol[i].address == symbol[first].address)
			continue;
		if (i - first > 1)
			qsort_r(&symbol[first], i - first, sizeof(*symbol), compare_symbols,
				load->names);
		first = i;
	}
}

static int add_region(struct kernel_symbols *symbols, uint32_t high, size_t first)
{
	int err = ARRAY_RESERVE(symbols->region, symbols->region_count, symbols->region_capacity);

	if (!err)
		symbols->region[symbols->region_count++] =
			(struct region){.high = high, .first = (uint32_t)first};
	return err;
}

static int fill_columns(struct kernel_symbols *symbols, const struct load *load)
{
	symbols->low = malloc((load->count + 1) * sizeof(*symbols->low));
	symbols->name = malloc((load->count + 1) * sizeof(*symbols->name));
	symbols->module = malloc((load->count + 1) * sizeof(*symbols->module));
	if (!symbols->low || !symbols->name || !symbols->module)
		return -ENOMEM;
	for (size_t i = 0; i < load->count; i++) {
		const struct raw_symbol *symbol = &load->symbol[i];
		const uint32_t high = (uint32_t)(symbol->address >> 32);

		if (i && symbol->address == symbol[-1].address)
			continue;
		if (!symbols->region_count ||
		    symbols->region[symbols->region_count - 1].high != high) {
			int err = add_region(symbols, high, symbols->count);

			if (err)
				return err;
		}
		symbols->low[symbols->count] = (uint32_t)symbol->address;
		symbols->name[symbols->count] = symbol->name;
		symbols->module[symbols->count++] = symbol->module;
	}
	return 0;
}

/* On failure, the table is empty, as after forget(). */
static int take_load(struct kernel_symbols *symbols, struct load *load)
{
	char *names;
	int err;

	sort_symbols(load);
	err = fill_columns(symbols, load);
	if (err) {
		kernel_symbols_forget(symbols);
		return err;
	}
	names = realloc(load->names, load->names_size);
	symbols->names = names ? names : load->names;
	load->names = NULL;
	symbols->names_size = load->names_size;
	symbols->module_name = TAKE(load->module_name);
	symbols->module_count = load->module_count;
	return 0;
}

/* FNV-1a over each module's name, size and address, but not its use count, which changes all the
 * time. */
static uint64_t hash_modules(const char *proc)
{
	OWNED_MEM char *text = NULL;
	char path[PATH_MAX_BYTES];
	uint64_t hash = 0xcbf29ce484222325ULL;
	unsigned int field = 0;

	snprintf(path, sizeof(path), "%s/modules", proc);
	if (read_file(path, MODULES_MAX_BYTES, &text, NULL))
		return 0;
	for (const char *c = text; *c; c++) {
		if (*c == '\n')
			field = 0;
		else if (*c == ' ')
			field++;
		else if (field == 2 || field == 3 || field == 4)
			continue;
		hash = (hash ^ (uint8_t)*c) * 0x100000001b3ULL;
	}
	return hash;
}

static int begin(const struct kernel_symbols *symbols, struct load *load)
{
	char path[PATH_MAX_BYTES];
	uint32_t nothing;

	load->fd = -1;
	/* Before reading the symbols: a module loaded in between is noticed at the next refresh. */
	load->modules_hash = hash_modules(symbols->proc);
	load->buffer = malloc(READ_BYTES);
	load->module_name = calloc(KERNEL_MODULES_MAX, sizeof(*load->module_name));
	if (!load->buffer || !load->module_name)
		return -ENOMEM;
	load->module_count = 1;
	snprintf(path, sizeof(path), "%s/kallsyms", symbols->proc);
	load->fd = open(path, O_RDONLY | O_CLOEXEC);
	return load->fd < 0 ? -errno : add_name(load, "", &nothing);
}

/* The table is what was read; above a bound the rest is left out. */
static int end(struct kernel_symbols *symbols, struct load *load, int err)
{
	if (err == -EFBIG)
		err = 0;
	if (!err && !load->has_address)
		err = -EPERM;
	if (!err)
		err = take_load(symbols, load);
	symbols->is_loaded = true;
	symbols->modules_hash = load->modules_hash;
	return err;
}

int kernel_symbols_read(struct kernel_symbols *symbols, const struct slice *slice)
{
	OWNED(load) struct load *load = NULL;
	int more = 0;

	if (symbols->is_loaded)
		return 0;
	load = TAKE(symbols->load);
	if (!load) {
		load = calloc(1, sizeof(*load));
		if (!load)
			return -ENOMEM;
		more = begin(symbols, load);
	}
	if (!more)
		more = read_lines(load, slice);
	if (more <= 0)
		return end(symbols, load, more);
	symbols->load = TAKE(load);
	return more;
}

int kernel_symbols_refresh(struct kernel_symbols *symbols)
{
	if (!symbols->is_loaded || hash_modules(symbols->proc) == symbols->modules_hash)
		return 0;
	kernel_symbols_forget(symbols);
	return 1;
}

/* ---- looking up ---- */

/* Returns the last symbol of [first, end) at or below low; end when there is none. */
static size_t find_low(const struct kernel_symbols *symbols, size_t first, size_t end, uint32_t low)
{
	const size_t below = ARRAY_LEADING(end - first, at, symbols->low[first + at] <= low);

	return below ? first + below - 1 : end;
}

static int find(const struct kernel_symbols *symbols, uint64_t address, const char **ret_name,
		const char **ret_module)
{
	for (size_t i = 0; i < symbols->region_count; i++) {
		const size_t first = symbols->region[i].first;
		const size_t end = i + 1 < symbols->region_count ? symbols->region[i + 1].first
								 : symbols->count;
		size_t at;

		if (symbols->region[i].high != address >> 32)
			continue;
		at = find_low(symbols, first, end, (uint32_t)address);
		if (at == end || (uint32_t)address - symbols->low[at] >= KERNEL_FUNCTION_MAX_BYTES)
			return -ENOENT;
		*ret_name = symbols->names + symbols->name[at];
		*ret_module = symbols->names + symbols->module_name[symbols->module[at]];
		return 0;
	}
	return -ENOENT;
}

int kernel_symbols_find(struct kernel_symbols *symbols, uint64_t address, const char **ret_name,
			const char **ret_module)
{
	int err = kernel_symbols_read(symbols, NULL);

	if (err)
		return err;
	return find(symbols, address, ret_name, ret_module);
}
