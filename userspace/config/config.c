/* SPDX-License-Identifier: BSD-2-Clause */
#include "config/config.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/nearest.h"
#include "base/utf8.h"
#include "config/section.h"
#include "config/url.h"

/* ---- keys ---- */

#define OPTION_KEY(id, key, long_option, switch, standard, how)                                    \
	{                                                                                          \
		.name = key, .option = long_option, .takes_no_value = switch,                      \
		.fallback = standard, .lines = CONFIG_LINES_##how                                  \
	}                                                                                          \
	,
#define SERVED_KEY(id, key, field, standard, how, what)                                            \
	{.name = key, .fallback = standard, .lines = CONFIG_LINES_##how, .shown = CONFIG_##what},

static const struct config_key capture_keys[] = {CONFIG_CAPTURE_KEYS(OPTION_KEY)};
static const struct config_key store_keys[] = {CONFIG_STORE_KEYS(OPTION_KEY)};
static const struct config_key http_keys[] = {CONFIG_HTTP_KEYS(SERVED_KEY)};
static const struct config_key push_keys[] = {CONFIG_PUSH_KEYS(SERVED_KEY)};

#define KIND_NAME(id, name, ...) name,
static const char *const kind_names[] = {CONFIG_SECTIONS(KIND_NAME)};

static const struct {
	const struct config_key *key;
	size_t count;
} tables[] = {
	[CONFIG_CAPTURE] = {capture_keys, ARRAY_SIZE(capture_keys)},
	[CONFIG_STORE] = {store_keys, ARRAY_SIZE(store_keys)},
	[CONFIG_HTTP] = {http_keys, ARRAY_SIZE(http_keys)},
	[CONFIG_PUSH] = {push_keys, ARRAY_SIZE(push_keys)},
};
_Static_assert(ARRAY_SIZE(capture_keys) <= CONFIG_KEYS_MAX, "a section holds all its keys");
_Static_assert(ARRAY_SIZE(push_keys) <= CONFIG_KEYS_MAX, "a section holds all its keys");

const struct config_key *config_keys(enum config_kind kind, size_t *ret_count)
{
	*ret_count = tables[kind].count;
	return tables[kind].key;
}

const char *config_kind_name(enum config_kind kind)
{
	return kind_names[kind];
}

bool config_key_of_option(const char *option, enum config_kind *ret_kind, size_t *ret_key)
{
	for (enum config_kind kind = CONFIG_CAPTURE; kind <= CONFIG_STORE; kind++) {
		for (size_t i = 0; i < tables[kind].count; i++) {
			if (strcmp(tables[kind].key[i].option, option))
				continue;
			*ret_kind = kind;
			*ret_key = i;
			return true;
		}
	}
	return false;
}

/* Of a value in a message. */
#define CONFIG_SHOWN_MAX_CHARS 128U
#define HINT_BYTES 192U

/* ---- what somebody may have meant by a name that is not known ---- */

/* Writes a hint that begins with "; ", or "" when nothing is near: a section for "[htp]", and for a
 * key one of its section, or the section that it belongs to. */
static void hint_at_section(const char *name, size_t size, char ret_hint[HINT_BYTES])
{
	struct nearest nearest = NEAREST_NONE;

	for (enum config_kind kind = 0; kind < CONFIG_KIND_COUNT; kind++)
		nearest_compare(&nearest, name, size, config_kind_name(kind));
	if (nearest.name)
		snprintf(ret_hint, HINT_BYTES, "; did you mean [%s%s]?", nearest.name,
			 strcmp(nearest.name, config_kind_name(CONFIG_PUSH)) ? "" : " NAME");
	else
		snprintf(ret_hint, HINT_BYTES,
			 "; there are [capture], [store], [http] and [push NAME]");
}

/* Finds a key by its own name or its option's. */
static const struct config_key *find(enum config_kind kind, const char *name)
{
	size_t count;
	const struct config_key *key = config_keys(kind, &count);

	for (size_t i = 0; i < count; i++) {
		if (!strcmp(key[i].name, name) || (key[i].option && !strcmp(key[i].option, name)))
			return &key[i];
	}
	return NULL;
}

static void hint_at_key(enum config_kind kind, const char *name, char ret_hint[HINT_BYTES])
{
	struct nearest nearest = NEAREST_NONE;
	const struct config_key *key;
	size_t count;

	ret_hint[0] = '\0';
	for (enum config_kind other = 0; other < CONFIG_KIND_COUNT; other++) {
		const struct config_key *found = find(other, name);

		if (!found)
			continue;
		snprintf(ret_hint, HINT_BYTES, "; it is '%s' of [%s%s]", found->name,
			 config_kind_name(other), other == CONFIG_PUSH ? " NAME" : "");
		return;
	}
	key = config_keys(kind, &count);
	for (size_t i = 0; i < count; i++)
		nearest_compare(&nearest, name, strlen(name), key[i].name);
	if (nearest.name)
		snprintf(ret_hint, HINT_BYTES, "; did you mean '%s'?", nearest.name);
}

/* ---- sections ---- */

static void section_free(struct config_section *section)
{
	if (!section)
		return;
	for (size_t i = 0; i < CONFIG_KEYS_MAX; i++) {
		if (section->text[i])
			explicit_bzero(section->text[i], strlen(section->text[i]));
		free(section->text[i]);
	}
	free(section->title);
	free(section);
}
DEFINE_OWNED(struct config_section, section)

int config_new(struct config **ret_config)
{
	struct config *config = calloc(1, sizeof(*config));

	if (!config)
		return -ENOMEM;
	*ret_config = config;
	return 0;
}

void config_free(struct config *config)
{
	if (!config)
		return;
	for (size_t i = 0; i < config->section_count; i++)
		section_free(config->section[i]);
	free(config->path);
	free(config);
}

const char *config_path(const struct config *config)
{
	return config->path;
}

struct config_section *config_find(const struct config *config, enum config_kind kind,
				   const char *name)
{
	for (size_t i = 0; i < config->section_count; i++) {
		if (config->section[i]->kind == kind && !strcmp(config->section[i]->name, name))
			return config->section[i];
	}
	return NULL;
}

static struct config_value default_of(const struct config_key *key, const char *section)
{
	return (struct config_value){
		.text = key->fallback[0] ? key->fallback : NULL, .key = key, .section = section};
}

static void fill_values(struct config_section *section)
{
	size_t count;
	const struct config_key *key = config_keys(section->kind, &count);

	for (size_t i = 0; i < count; i++)
		section->value[i] = default_of(&key[i], section->title);
}

static int add_section(struct config *config, enum config_kind kind, const char *name,
		       unsigned int line, struct config_section **ret_section)
{
	OWNED(section) struct config_section *section = calloc(1, sizeof(*section));
	const char *kind_name = config_kind_name(kind);

	if (!section)
		return -ENOMEM;
	if (asprintf(&section->title, "%s%s%s", kind_name, name[0] ? "." : "", name) < 0) {
		section->title = NULL;
		return -ENOMEM;
	}
	section->kind = kind;
	section->name = section->title + strlen(kind_name) + (name[0] != '\0');
	section->line = line;
	fill_values(section);
	*ret_section = config->section[config->section_count++] = TAKE(section);
	return 0;
}

/* A name becomes part of file names and of messages. */
static bool is_name(const char *name)
{
	return name[0] && name[0] != '.' &&
	       !name[strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				  "_.-")];
}

static bool find_kind(const char *word, size_t size, enum config_kind *ret_kind)
{
	for (enum config_kind kind = 0; kind < CONFIG_KIND_COUNT; kind++) {
		const char *name = config_kind_name(kind);

		if (strlen(name) == size && !memcmp(name, word, size)) {
			*ret_kind = kind;
			return true;
		}
	}
	return false;
}

/* Takes NAME out of "push NAME". */
static int take_name(enum config_kind kind, const char *text, size_t size,
		     char ret_name[CONFIG_NAME_MAX_BYTES + 1], char why[CONFIG_WHY_BYTES])
{
	ret_name[0] = '\0';
	if (kind != CONFIG_PUSH) {
		if (!size)
			return 0;
		return config_refuse(why, -EINVAL, "[%s] has no name of its own: write [%s]",
				     config_kind_name(kind), config_kind_name(kind));
	}
	if (size <= CONFIG_NAME_MAX_BYTES) {
		memcpy(ret_name, text, size);
		ret_name[size] = '\0';
		if (is_name(ret_name))
			return 0;
	}
	return config_refuse(
		why, -EINVAL,
		"[push NAME] needs a name of letters, digits, '_', '-' and '.', %u at most",
		CONFIG_NAME_MAX_BYTES);
}

int config_open_section(struct config *config, const char *title, size_t size, unsigned int line,
			struct config_section **ret_section, char why[CONFIG_WHY_BYTES])
{
	char name[CONFIG_NAME_MAX_BYTES + 1], hint[HINT_BYTES];
	struct config_section *found;
	enum config_kind kind;
	size_t word = 0;
	int err;

	while (word < size && title[word] != ' ' && title[word] != '\t')
		word++;
	if (!find_kind(title, word, &kind)) {
		hint_at_section(title, word, hint);
		return config_refuse(why, -EINVAL, "no section is called [%.*s]%s", (int)word,
				     title, hint);
	}
	title += word;
	size -= word;
	while (size && (*title == ' ' || *title == '\t')) {
		title++;
		size--;
	}
	err = take_name(kind, title, size, name, why);
	if (err)
		return err;
	found = config_find(config, kind, name);
	if (found) {
		if (!found->line)
			found->line = line;
		*ret_section = found;
		return 0;
	}
	if (config->section_count == CONFIG_SECTIONS_MAX)
		return config_refuse(why, -EFBIG, "there are more than %u sections",
				     CONFIG_SECTIONS_MAX);
	return add_section(config, kind, name, line, ret_section);
}

/* Returns the text of a value that goes on, or that is given again. */
static char *join(const char *old, char between, const char *text)
{
	char *joined;

	return asprintf(&joined, "%s%c%s", old, between, text) < 0 ? NULL : joined;
}

/* Whether a value of the same layer is there already, and the new one goes behind it. */
static int check_repeat(const struct config_value *value, const struct config_origin *origin,
			bool *ret_joins, char why[CONFIG_WHY_BYTES])
{
	const bool is_repeat =
		value->source == origin->source && origin->source != CONFIG_FROM_DEFAULT;

	*ret_joins = is_repeat && value->key->lines != CONFIG_LINES_ONE;
	if (!is_repeat || *ret_joins || origin->source != CONFIG_FROM_FILE)
		return 0;
	if (origin->continues)
		return config_refuse(why, -EINVAL,
				     "the line is indented, so it goes on with '%s' of line %u, "
				     "which has one value",
				     value->key->name, value->line);
	return config_refuse(why, -EINVAL, "'%s' stands in line %u already", value->key->name,
			     value->line);
}

static int check_text(const struct config_value *value, const char *text,
		      char why[CONFIG_WHY_BYTES])
{
	if (!text[0])
		return config_refuse(why, -EINVAL, "'%s' is empty: give a value, or leave it out",
				     value->key->name);
	if (!utf8_is_clean(text, strlen(text)))
		return config_refuse(why, -EINVAL, "'%s' has control codes, or is not UTF-8",
				     value->key->name);
	return 0;
}

static int store_at(struct config *config, struct config_section *section, size_t index,
		    const char *text, const struct config_origin *origin,
		    char why[CONFIG_WHY_BYTES])
{
	struct config_value *value = &section->value[index];
	bool joins;
	char *copy;
	int err = check_text(value, text, why);

	if (!err)
		err = check_repeat(value, origin, &joins, why);
	if (err)
		return err;
	/* --set may be read before the file. */
	if (value->source > origin->source)
		return 0;
	if ((joins ? strlen(value->text) : 0) + strlen(text) >= CONFIG_VALUE_MAX_BYTES)
		return config_refuse(why, -EFBIG, "'%s' is longer than %u bytes", value->key->name,
				     CONFIG_VALUE_MAX_BYTES);
	copy = joins ? join(value->text, value->key->lines == CONFIG_LINES_EACH ? '\n' : ',', text)
		     : strdup(text);
	if (!copy)
		return -ENOMEM;
	free(section->text[index]);
	value->text = section->text[index] = copy;
	value->source = origin->source;
	value->line = origin->line;
	value->file = origin->source == CONFIG_FROM_FILE ? config->path : NULL;
	return 0;
}

int config_store(struct config *config, struct config_section *section, const char *name,
		 const char *text, const struct config_origin *origin, char why[CONFIG_WHY_BYTES])
{
	char hint[HINT_BYTES];
	size_t count;
	const struct config_key *key = config_keys(section->kind, &count);

	for (size_t i = 0; i < count; i++) {
		if (!strcmp(key[i].name, name))
			return store_at(config, section, i, text, origin, why);
	}
	hint_at_key(section->kind, name, hint);
	return config_refuse(why, -EINVAL, "[%s] has no key '%.*s'%s",
			     config_kind_name(section->kind), (int)CONFIG_NAME_MAX_BYTES, name,
			     hint);
}

static int set(struct config *config, const char *assignment, char why[CONFIG_WHY_BYTES])
{
	const struct config_origin origin = {.source = CONFIG_FROM_SET};
	const char *equals = strchr(assignment, '=');
	OWNED_MEM char *place = NULL;
	struct config_section *section;
	char *key, *name;
	int err;

	place = equals ? strndup(assignment, (size_t)(equals - assignment)) : NULL;
	if (equals && !place)
		return -ENOMEM;
	/* The name of a sink may have dots, a key has none. */
	key = place ? strrchr(place, '.') : NULL;
	if (!key)
		return config_refuse(
			why, -EINVAL,
			"give SECTION.KEY=VALUE, as in capture.hz=49 or push.NAME.url=...");
	*key++ = '\0';
	name = strchr(place, '.');
	if (name)
		*name = ' ';
	err = config_open_section(config, place, strlen(place), 0, &section, why);
	return err ? err : config_store(config, section, key, equals + 1, &origin, why);
}

int config_set(struct config *config, const char *assignment, char why[CONFIG_WHY_BYTES])
{
	char line[CONFIG_WHY_BYTES] = "";
	int err = set(config, assignment, line);

	if (!err || err == -ENOMEM)
		return err;
	/* What follows '=' may be a secret. */
	return config_refuse(why, err, "--set %.*s: %s", (int)strcspn(assignment, "="), assignment,
			     line);
}

/* Of pyprofd, or of pyprofd-serve, whose options are the keys. */
static const char *option_of(const struct config_key *key)
{
	return key->option ?: key->name;
}

/* Notes an option that pyprofd's own code reads, only to be shown: cleaned, and not where it is too
 * long. */
static int note_shown(struct config *config, struct config_section *section, size_t key,
		      const struct config_value *given, char why[CONFIG_WHY_BYTES])
{
	const struct config_origin origin = {.source = given->source};
	const size_t size = strlen(given->text);
	OWNED_MEM char *text = malloc(size * UTF8_CLEAN_MAX_GROWTH + 1);
	int err;

	if (!text)
		return -ENOMEM;
	text[utf8_clean(given->text, size, text)] = '\0';
	err = store_at(config, section, key, text, &origin, why);
	return err == -EFBIG ? 0 : err;
}

int config_note(struct config *config, enum config_kind kind, size_t key,
		const struct config_value *given, char why[CONFIG_WHY_BYTES])
{
	const struct config_origin origin = {.source = given->source};
	const char *title = config_kind_name(kind);
	struct config_section *section;
	char line[CONFIG_WHY_BYTES] = "";
	int err = config_open_section(config, title, strlen(title), 0, &section, line);

	if (err)
		return err;
	if (section->value[key].key->option)
		err = note_shown(config, section, key, given, line);
	else
		err = store_at(config, section, key, given->text, &origin, line);
	if (!err || err == -ENOMEM)
		return err;
	return config_refuse(why, err, "--%s: %s", option_of(section->value[key].key), line);
}

struct config_value config_get(const struct config *config, enum config_kind kind, size_t key)
{
	const struct config_section *section = config_find(config, kind, "");
	const struct config_key *keys;
	size_t count;

	if (section)
		return section->value[key];
	keys = config_keys(kind, &count);
	return default_of(&keys[key], config_kind_name(kind));
}

int config_each(const struct config *config,
		int (*take)(void *context, const struct config_value *value), void *context)
{
	size_t count;
	int err = 0;

	for (enum config_kind kind = CONFIG_CAPTURE; kind <= CONFIG_STORE; kind++) {
		const struct config_section *section = config_find(config, kind, "");

		(void)config_keys(kind, &count);
		for (size_t i = 0; section && i < count && !err; i++) {
			if (section->value[i].source != CONFIG_FROM_DEFAULT)
				err = take(context, &section->value[i]);
		}
	}
	return err;
}

void config_place(const struct config_value *value, char ret_place[CONFIG_WHY_BYTES])
{
	const char *name = value->key->name;

	switch (value->source) {
	case CONFIG_FROM_FILE:
		snprintf(ret_place, CONFIG_WHY_BYTES, "%s:%u: %s", value->file, value->line, name);
		break;
	case CONFIG_FROM_SET:
		snprintf(ret_place, CONFIG_WHY_BYTES, "--set %s.%s", value->section, name);
		break;
	case CONFIG_FROM_OPTION:
		snprintf(ret_place, CONFIG_WHY_BYTES, "--%s", option_of(value->key));
		break;
	case CONFIG_FROM_DEFAULT:
		snprintf(ret_place, CONFIG_WHY_BYTES, "%s.%s", value->section, name);
		break;
	}
}

int config_refuse(char why[CONFIG_WHY_BYTES], int err, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(why, CONFIG_WHY_BYTES, format, args);
	va_end(args);
	return err;
}

int config_complain(const struct config_value *value, char why[CONFIG_WHY_BYTES],
		    const char *format, ...)
{
	char place[CONFIG_WHY_BYTES], text[CONFIG_WHY_BYTES], url[CONFIG_URL_SHOWN_BYTES];
	const char *shown = value->text;
	va_list args;

	config_place(value, place);
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (!shown || value->key->shown == CONFIG_SHOWN_NAME)
		return config_refuse(why, -EINVAL, "%s %s", place, text);
	if (value->key->shown == CONFIG_SHOWN_URL) {
		config_url_hide(shown, url);
		shown = url;
	}
	return config_refuse(why, -EINVAL, "%s '%.*s' %s", place, (int)CONFIG_SHOWN_MAX_CHARS,
			     shown, text);
}

bool config_next_item(const char **text, char between, const char **ret_item, size_t *ret_size)
{
	const char *item = *text, *end;

	if (!item || !*item)
		return false;
	end = strchrnul(item, between);
	*text = *end ? end + 1 : end;
	item += strspn(item, " \t");
	while (end > item && (end[-1] == ' ' || end[-1] == '\t'))
		end--;
	*ret_item = item;
	*ret_size = end > item ? (size_t)(end - item) : 0;
	return true;
}
