/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "reader/top_view.h"

#define KEY_ESCAPE '\033'
#define KEY_BACKSPACE '\177'
#define PAGE_ROWS 10U /* when the screen's height is not known */

static void drop_filter(struct top_view *view)
{
	if (view->regex) {
		regfree(view->regex);
		free(TAKE(view->regex));
	}
	view->filter[0] = '\0';
}

void top_view_release(struct top_view *view)
{
	drop_filter(view);
}

int top_view_set_filter(struct top_view *view, const char *text)
{
	regex_t *regex;

	if (!text[0]) {
		drop_filter(view);
		return 0;
	}
	regex = calloc(1, sizeof(*regex));
	if (!regex)
		return -ENOMEM;
	if (strlen(text) >= sizeof(view->filter) ||
	    regcomp(regex, text, REG_EXTENDED | REG_NOSUB)) {
		free(regex);
		return -EINVAL;
	}
	drop_filter(view);
	view->regex = regex;
	memcpy(view->filter, text, strlen(text) + 1);
	return 0;
}

bool top_view_sort(struct top_view *view, const char *name)
{
	static const char *const names[] = {"cpu", "gil", "wait", "name"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (strcmp(names[i], name))
			continue;
		view->sort = (enum top_sort)i;
		view->first = 0;
		return true;
	}
	return false;
}

/* ---- the filter, as it is typed ---- */

static void end_typing(struct top_view *view)
{
	view->is_typing = false;
	view->first = 0;
	if (top_view_set_filter(view, view->typed))
		view->error = "this is not a regular expression";
}

static void type(struct top_view *view, char key)
{
	size_t size = strlen(view->typed);

	if (key == '\r' || key == '\n')
		end_typing(view);
	else if (key == KEY_ESCAPE)
		view->is_typing = false;
	else if ((key == KEY_BACKSPACE || key == '\b') && size)
		view->typed[size - 1] = '\0';
	else if ((unsigned char)key >= ' ' && (unsigned char)key < 0x7f &&
		 size + 1 < sizeof(view->typed))
		memcpy(view->typed + size, (char[]){key, '\0'}, 2);
}

/* ---- the others ---- */

static void scroll(struct top_view *view, bool is_down, unsigned int by)
{
	if (is_down)
		view->first += by;
	else
		view->first -= by < view->first ? by : view->first;
}

/* Returns the length of a sequence such as "[A" after an escape. */
static size_t take_sequence(struct top_view *view, const char *keys, size_t size)
{
	unsigned int page = view->rows > 4 ? view->rows - 4 : PAGE_ROWS;

	if (size < 2 || keys[0] != '[') {
		(void)top_view_set_filter(view, "");
		return 0;
	}
	if (keys[1] == 'A' || keys[1] == 'B')
		scroll(view, keys[1] == 'B', 1);
	if (keys[1] == 'H')
		view->first = 0;
	if (size >= 3 && keys[2] == '~' && (keys[1] == '5' || keys[1] == '6'))
		scroll(view, keys[1] == '6', page);
	return size >= 3 && keys[2] == '~' ? 3 : 2;
}

static bool take_key(struct top_view *view, char key)
{
	switch (key) {
	case 'c':
		return top_view_sort(view, "cpu");
	case 'g':
		return top_view_sort(view, "gil");
	case 'w':
		return top_view_sort(view, "wait");
	case 'n':
		return top_view_sort(view, "name");
	case '1':
	case '2':
	case '3':
		view->depth = (unsigned int)(key - '0');
		return true;
	case 'i':
		view->shows_idle = !view->shows_idle;
		return true;
	case ' ':
	case 'p':
		view->is_frozen = !view->is_frozen;
		return true;
	case '/':
		view->is_typing = true;
		memcpy(view->typed, view->filter, sizeof(view->typed));
		return true;
	case 'j':
	case 'k':
		scroll(view, key == 'j', 1);
		return true;
	case 'h':
	case '?':
		view->shows_help = true;
		return true;
	case 'q':
		view->wants_end = true;
		return true;
	default:
		return false;
	}
}

bool top_view_keys(struct top_view *view, const char *keys, size_t size)
{
	bool changed = false;

	for (size_t i = 0; i < size; i++) {
		bool was_help = view->shows_help;

		view->error = NULL;
		view->shows_help = false;
		if (view->is_typing) {
			type(view, keys[i]);
			changed = true;
		} else if (keys[i] == KEY_ESCAPE) {
			i += take_sequence(view, keys + i + 1, size - i - 1);
			changed = true;
		} else {
			changed |= take_key(view, keys[i]) || was_help;
		}
	}
	return changed;
}
