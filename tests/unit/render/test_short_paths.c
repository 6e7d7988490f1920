/* SPDX-License-Identifier: BSD-2-Clause */
#include "render_fixture.h"

#include "render/short_paths.h"

/* Paths and what they are to be shown as, in any order. */
struct expected {
	const char *whole, *shown;
};

static void check(const char *const *script, size_t script_count, const struct expected *file,
		  size_t count)
{
	CLEANUP(short_paths_release) struct short_paths paths = {0};

	for (size_t i = 0; i < script_count; i++)
		assert_int_equal(short_paths_add_script(&paths, script[i]), 0);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(short_paths_add(&paths, (uint32_t)(i + 1), file[i].whole), 0);
	assert_int_equal(short_paths_resolve(&paths), 0);
	for (size_t i = 0; i < count; i++)
		assert_string_equal(short_paths_get(&paths, (uint32_t)(i + 1), file[i].whole),
				    file[i].shown);
}

#define CHECK(scripts, ...)                                                                        \
	do {                                                                                       \
		static const struct expected file_[] = {__VA_ARGS__};                              \
		check(scripts, ARRAY_SIZE(scripts), file_, ARRAY_SIZE(file_));                     \
	} while (0)

static const char *const no_script[0] = {};

static void short_path__is_relative_to_packages_library_and_program(void **state)
{
	static const char *const script[] = {"/srv/shop/serve.py"};

	(void)state;
	CHECK(script,
	      {"/var/x/lib/python3.12/site-packages/pip/_internal/cli/main.py",
	       "pip/_internal/cli/main.py"},
	      {"/usr/lib/python3/dist-packages/apt/cache.py", "apt/cache.py"},
	      {"/root/.pyenv/versions/3.12.1/lib/python3.12/json/decoder.py", "json/decoder.py"},
	      {"/opt/free/lib64/python3.13t/threading.py", "threading.py"},
	      {"/srv/shop/serve.py", "serve.py"},
	      {"/srv/shop/shop/api/handlers.py", "shop/api/handlers.py"});
}

static void short_path__is_relative_to_what_files_share_without_a_script(void **state)
{
	(void)state;
	CHECK(no_script, {"/srv/shop/shop/api/handlers.py", "api/handlers.py"},
	      {"/srv/shop/shop/db/rows.py", "db/rows.py"}, {"/srv/mail/run.py", "mail/run.py"},
	      /* Two components at least. */
	      {"/opt/tools/deep/inside/one.py", "inside/one.py"}, {"/a.py", "/a.py"});
}

static void short_path__files_that_look_alike_get_components_until_they_differ(void **state)
{
	static const char *const script[] = {"/srv/a/train.py", "/srv/b/train.py"};

	(void)state;
	CHECK(script, {"/srv/a/train.py", "a/train.py"}, {"/srv/b/train.py", "b/train.py"},
	      {"/usr/lib/python3.11/json/decoder.py", "python3.11/json/decoder.py"},
	      {"/usr/lib/python3.12/json/decoder.py", "python3.12/json/decoder.py"},
	      {"/srv/a/json/decoder.py", "a/json/decoder.py"},
	      {"/usr/lib/python3.12/json/encoder.py", "json/encoder.py"},
	      {"/x/lib/python3.12/site-packages/pip/main.py",
	       "/x/lib/python3.12/site-packages/pip/main.py"},
	      {"/y/lib/python3.12/site-packages/pip/main.py",
	       "/y/lib/python3.12/site-packages/pip/main.py"});
}

static void short_path__relative_path_and_its_whole_one_differ(void **state)
{
	(void)state;
	CHECK(no_script, {"/srv/x.py", "/srv/x.py"}, {"srv/x.py", "srv/x.py"},
	      {"./x.py", "./x.py"});
}

static void short_path__virtualenv_and_editable_install_inside_of_the_program(void **state)
{
	static const char *const script[] = {"/srv/shop/serve.py"};

	(void)state;
	CHECK(script,
	      {"/srv/shop/.venv/lib/python3.12/site-packages/requests/api.py", "requests/api.py"},
	      {"/srv/shop/.venv/lib/python3.12/json/decoder.py", "json/decoder.py"},
	      /* Installed with pip -e: no site-packages in the path. */
	      {"/srv/shop/vendor/billing/src/billing/core.py",
	       "vendor/billing/src/billing/core.py"},
	      {"/home/me/src/grid/src/grid/core.py", "grid/core.py"},
	      {"/home/me/src/grid/src/grid/mesh/cut.py", "mesh/cut.py"});
}

static void short_path__zip_frozen_deleted_and_relative_files(void **state)
{
	(void)state;
	CHECK(no_script, {"/usr/lib/python312.zip/json/decoder.py", "json/decoder.py"},
	      {"/srv/dist/app.pyz/app/views.py", "app/views.py"},
	      {"<frozen importlib._bootstrap>", "<frozen importlib._bootstrap>"},
	      {"<string>", "<string>"}, {"<ipython-input-3-a/b>", "<ipython-input-3-a/b>"},
	      {"/srv/gone/run/old.py (deleted)", "run/old.py (deleted)"},
	      {"pkg/mod.py", "pkg/mod.py"});
}

static void short_path__windows_and_odd_paths(void **state)
{
	(void)state;
	CHECK(no_script, {"C:\\Python312\\Lib\\json\\decoder.py", "json\\decoder.py"},
	      {"C:\\app\\Lib\\site-packages\\flask\\app.py", "flask\\app.py"},
	      {"D:/code/shop/run.py", "shop/run.py"}, {"/srv/back\\slash/x.py", "back\\slash/x.py"},
	      {"/usr/lib/python3.12//os.py", "os.py"},
	      /* Nothing follows: no directory of packages. */
	      {"/srv/site-packages", "/srv/site-packages"}, {"//", "//"}, {"/", "/"}, {"", ""},
	      {"/srv/python3.12/app/x.py", "app/x.py"});
}

/* A profile of hostile paths must not cost more than its bytes allow. */
static void short_path__deep_paths_that_look_alike_end_as_whole_ones(void **state)
{
	CLEANUP(short_paths_release) struct short_paths paths = {0};
	static char text[2][8192];

	(void)state;
	for (int i = 0; i < 2; i++) {
		size_t at = (size_t)sprintf(text[i], "/%c", 'a' + i);

		while (at < sizeof(text[i]) - 32)
			at += (size_t)sprintf(text[i] + at, "/d");
		sprintf(text[i] + at, "/site-packages/x.py");
		assert_int_equal(short_paths_add(&paths, (uint32_t)i + 1, text[i]), 0);
	}
	assert_int_equal(short_paths_resolve(&paths), 0);
	assert_ptr_equal(short_paths_get(&paths, 1, text[0]), text[0]);
	assert_ptr_equal(short_paths_get(&paths, 2, text[1]), text[1]);
	assert_string_equal(short_paths_get(&paths, 7, "/unknown/x.py"), "/unknown/x.py");
}

static void add_stack(struct fixture *f, const char *const *name, const char *const *file,
		      size_t count)
{
	uint32_t location[8], stack;

	for (size_t i = 0; i < count; i++) {
		struct frame frame = {
			.kind = FRAME_PYTHON, .name = id(f, name[i]), .file = id(f, file[i])};

		assert_int_equal(profile_add_location(f->profile, &frame, &location[count - 1 - i]),
				 0);
	}
	assert_int_equal(profile_add_stack(f->profile, location, count, &stack), 0);
}

static void short_path__program_is_where_its_script_lies(void **state)
{
	static const char *const name[] = {"<module>", "step"};
	static const char *const file[] = {"/srv/app/run.py", "/srv/app/lib/model/net.py"};
	static const char *const runpy[] = {"_run_module_as_main", "<module>", "step"};
	static const char *const main_file[] = {"<frozen runpy>", "/opt/tool/__main__.py",
						"/opt/tool/core/net.py"};
	CLEANUP(short_paths_release) struct short_paths paths = {0};
	CLEANUP(fixture_release) struct fixture f = {0};

	(void)state;
	fixture_init(&f);
	add_stack(&f, name, file, 2);
	add_stack(&f, runpy, main_file, 3);
	assert_int_equal(short_paths_of_profile(f.profile, &paths), 0);
	assert_string_equal(short_paths_get(&paths, id(&f, file[0]), file[0]), "run.py");
	assert_string_equal(short_paths_get(&paths, id(&f, file[1]), file[1]), "lib/model/net.py");
	assert_string_equal(short_paths_get(&paths, id(&f, main_file[2]), main_file[2]),
			    "tool/core/net.py");
	assert_string_equal(short_paths_get(NULL, id(&f, file[0]), file[0]), file[0]);
}

static void path_fit__keeps_file_and_line(void **state)
{
	static const char *const path = "pip/_internal/cli/main.py:46";
	char buffer[64];

	(void)state;
	assert_string_equal(path_fit(path, 28, buffer, sizeof(buffer)), path);
	assert_string_equal(path_fit(path, 27, buffer, sizeof(buffer)), "pip/…/cli/main.py:46");
	assert_string_equal(path_fit(path, 19, buffer, sizeof(buffer)), "pip/…/main.py:46");
	assert_string_equal(path_fit(path, 15, buffer, sizeof(buffer)), "…/main.py:46");
	assert_string_equal(path_fit(path, 9, buffer, sizeof(buffer)), "…in.py:46");
	assert_string_equal(path_fit("/日本/語.py:1", 8, buffer, sizeof(buffer)), "…/語.py:1");
}

static void skip__never_cuts_a_character(void **state)
{
	const char *text = "aß日🎉";

	(void)state;
	assert_int_equal(text_columns_of(text), 4);
	assert_ptr_equal(text_skip_columns(text, 0), text);
	assert_ptr_equal(text_skip_columns(text, 2), text + 3);
	assert_ptr_equal(text_skip_columns(text, 3), text + 6);
	assert_ptr_equal(text_skip_columns(text, 9), text + 10);
}

static void fit__never_takes_more_columns_than_there_are(void **state)
{
	static const char *const text[] = {"pip/_internal/cli/main.py:46", "/a/b/c/d/e/f/g/h.py:1",
					   "日本/語の/関数.py:12", "no_slash_at_all_in_it.py:3",
					   "a/"};
	char buffer[128];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(text); i++)
		for (size_t columns = 1; columns < 32; columns++) {
			assert_true(text_columns_of(path_fit(text[i], columns, buffer, 128)) <=
				    columns);
			assert_true(text_columns_of(name_fit(text[i], columns, buffer, 128)) <=
				    columns);
		}
	assert_string_equal(name_fit("_make_iterencode.<locals>._iterencode_dict", 21, buffer, 128),
			    "_make_iter…ncode_dict");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(skip__never_cuts_a_character),
		cmocka_unit_test(short_path__is_relative_to_packages_library_and_program),
		cmocka_unit_test(short_path__is_relative_to_what_files_share_without_a_script),
		cmocka_unit_test(
			short_path__files_that_look_alike_get_components_until_they_differ),
		cmocka_unit_test(short_path__relative_path_and_its_whole_one_differ),
		cmocka_unit_test(short_path__virtualenv_and_editable_install_inside_of_the_program),
		cmocka_unit_test(short_path__zip_frozen_deleted_and_relative_files),
		cmocka_unit_test(short_path__windows_and_odd_paths),
		cmocka_unit_test(short_path__deep_paths_that_look_alike_end_as_whole_ones),
		cmocka_unit_test(short_path__program_is_where_its_script_lies),
		cmocka_unit_test(path_fit__keeps_file_and_line),
		cmocka_unit_test(fit__never_takes_more_columns_than_there_are),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
