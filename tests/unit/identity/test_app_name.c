/* SPDX-License-Identifier: BSD-2-Clause */
#include "identity/identity.h"

#include <cmocka.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define TEXT_MAX 4096U

/* Arguments are written with '|' between them; a title's padding is not. */
static enum app_kind name_of(const char *line, char ret_app[LABEL_VALUE_BYTES])
{
	char text[TEXT_MAX];
	const size_t size = strlen(line) + 1; /* a NUL behind the last argument, too */

	text[size] = '\0';
	for (size_t i = 0; i < size; i++)
		text[i] = line[i] == '|' ? '\0' : line[i];
	return app_name(text, size, ret_app);
}

static void expect_app(const char *line, const char *expected)
{
	char app[LABEL_VALUE_BYTES];
	const enum app_kind kind = name_of(line, app);

	if (strcmp(app, expected) != 0 || kind != (expected[0] ? APP_NAMED : APP_NONE))
		print_message("%s: '%s', not '%s'\n", line, app, expected);
	assert_string_equal(app, expected);
	assert_int_equal(kind, expected[0] ? APP_NAMED : APP_NONE);
}

static void expect_parent(const char *line)
{
	char app[LABEL_VALUE_BYTES];

	assert_int_equal(name_of(line, app), APP_OF_PARENT);
	assert_string_equal(app, "");
}

static void app_name__script_is_its_file(void **state)
{
	(void)state;
	expect_app("python3|train.py|--lr|0.1", "train.py");
	expect_app("/usr/bin/python3.12|/srv/shop/manage.py|runserver", "manage.py");
	expect_app("/opt/pypy/bin/pypy3|./x.py", "x.py");
	expect_app("python|-u|-B|-X|dev|-W|ignore|-Xfaulthandler|a.py", "a.py");
	expect_app("python|-uB|-Wignore|a.py", "a.py");
	expect_app("python|--check-hash-based-pycs|always|a.py", "a.py");
	expect_app("python|/srv/pkg/__main__.py", "pkg");
	expect_app("python|__main__.py", "__main__.py");
	expect_app("python|./pkg/", "pkg");
	expect_app("/venv/bin/python3|/venv/bin/jupyter-lab|--port|1", "jupyter-lab");
	expect_app("python|ünï.py", "ünï.py");
}

static void app_name__module_is_its_name(void **state)
{
	(void)state;
	expect_app("python3|-m|http.server|80", "http.server");
	expect_app("python3|-mhttp.server", "http.server");
	expect_app("python3|-Im|pkg.tool", "pkg.tool");
	expect_app("python3|-u|-m|pkg|-m|other", "pkg");
}

static void app_name__code_and_prompts_have_none(void **state)
{
	(void)state;
	expect_app("python3", "");
	expect_app("python3|-i", "");
	expect_app("python3|-", "");
	expect_app("python3|-c|print('secret')", "");
	expect_app("python3|-cprint('secret')|a.py", "");
	expect_app("python3|-c", "");
	expect_app("python3|-m", "");
	expect_app("python3|-W", "");
	expect_app("python3|", "");
	expect_app("", "");
	expect_app("/usr/sbin/nginx|-g|x.py", "");
	expect_app("node|server.py", "");
}

static void app_name__children_of_a_library_are_their_parents(void **state)
{
	(void)state;
	expect_parent("/venv/bin/python3|-B|-c|from multiprocessing.spawn import spawn_main; "
		      "spawn_main(tracker_fd=7, pipe_handle=9)|--multiprocessing-fork");
	expect_parent("python3|-c|from multiprocessing.resource_tracker import main;main(6)");
	expect_parent("python3|-c|from multiprocessing.forkserver import main; main(5, 6, ['x'])");
	expect_parent("python3|-c|from billiard.spawn import spawn_main; spawn_main(1)");
	expect_parent("python3|-m|joblib.externals.loky.backend.popen_loky_posix|--process-name|L");
	expect_app("python3|-c|from multiprocessing import Pool", "");
	expect_app("python3|multiprocessing.py", "multiprocessing.py");
}

static void app_name__servers_are_named_by_their_application(void **state)
{
	(void)state;
	expect_app("/v/bin/python3|/v/bin/gunicorn|-w|2|-b|127.0.0.1:9801|shop.wsgi:app",
		   "shop.wsgi");
	expect_app("python3|-m|gunicorn|shop.wsgi", "shop.wsgi");
	expect_app("python3|/v/bin/gunicorn|-w|4|-k|gevent|--reload|shop.wsgi", "shop.wsgi");
	expect_app("python3|/v/bin/gunicorn|-b:80|--bind|unix:/run/x.sock|shop.wsgi", "shop.wsgi");
	expect_app("python3|/v/bin/gunicorn|--bind|localhost:80|-D|shop", "shop");
	expect_app("python3|/v/bin/gunicorn|shop.wsgi:make()|-n|web one", "web one");
	expect_app("python3|/v/bin/gunicorn|--name=web|shop.wsgi:app", "web");
	expect_app("python3|/v/bin/gunicorn|-c|/etc/gunicorn.py", "gunicorn");
	expect_app("python3|./v/bin/uvicorn|--host|0.0.0.0|--port|9802|shop.asgi:app", "shop.asgi");
	expect_app("python3|-m|uvicorn|main:app|--reload", "main");
	expect_app("python3|-m|uvicorn|--factory", "uvicorn");
	expect_app("python3|/v/bin/hypercorn|-b|h:80|shop.asgi:app", "shop.asgi");
}

static void app_name__celery_and_ray(void **state)
{
	(void)state;
	expect_app("python3|/v/bin/celery|-A|shop.tasks|worker", "shop.tasks");
	expect_app("python3|-m|celery|--app=shop.tasks:app|worker", "shop.tasks");
	expect_app("python3|/v/bin/celery|worker", "celery");
	expect_app("python3|/v/lib/python3.12/site-packages/ray/_private/workers/default_worker.py"
		   "|--node-ip-address=10.0.0.1|--redis-password=secret",
		   "ray");
	expect_app("python3|/v/bin/ray|start|--head", "ray");
}

static void app_name__launchers_are_named_by_their_script(void **state)
{
	(void)state;
	expect_app("python3|/v/bin/torchrun|--nproc_per_node=2|--rdzv_endpoint|h:294|jobs/train.py"
		   "|--data|x.py",
		   "train.py");
	expect_app("python3|-m|torch.distributed.run|--nnodes|2|-m|pkg.train|--lr|1", "pkg.train");
	expect_app("python3|/v/bin/torchrun|--standalone|--no-python|./x.sh", "torchrun");
	expect_app("python3|/v/bin/accelerate|launch|train.py", "train.py");
	expect_app("python3|/v/bin/deepspeed|--num_gpus|8|train.py", "train.py");
}

static void app_name__titles_of_servers(void **state)
{
	(void)state;
	expect_app("gunicorn: master [shop.wsgi:app]||||||||", "shop.wsgi");
	expect_app("gunicorn: worker [web1]|||", "web1");
	expect_app("gunicorn: worker [web one]", "web one");
	expect_app("gunicorn: worker []", "gunicorn");
	expect_app("gunicorn: arbiter", "gunicorn");
	expect_app("[celeryd: celery@vm:MainProcess] -active- (-A shop.tasks worker -c 2 -l error)",
		   "shop.tasks");
	expect_app("[celeryd: w1@vm:MainProcess] -active- (worker --app=shop -l info)", "shop");
	expect_app("[celeryd: celery@vm:ForkPoolWorker-1]||||", "celery");
	expect_app("[celeryd: w1@vm:MainProcess] -active- (worker -l info)", "celery");
	expect_app("gunicorn: worker [x]", "x");
	expect_app("ray::IDLE", "ray");
	expect_app("ray::IDLE_SpillWorker", "ray");
	expect_app("ray::Counter.increment()", "ray::Counter");
	expect_app("ray::work", "ray::work");
	expect_app("ray::", "ray");
}

static void app_name__is_bounded_and_clean(void **state)
{
	char line[1024] = "python3|", app[LABEL_VALUE_BYTES];

	(void)state;
	memset(line + strlen(line), 'x', 500);
	assert_int_equal(name_of(line, app), APP_NAMED);
	assert_int_equal(strlen(app), LABEL_VALUE_MAX_BYTES);
	expect_app("python3|a\033[31m\n.py", "a\\x1b[31m\\n.py");
	expect_app("python3|a\xff.py", "a\xef\xbf\xbd.py");
	expect_app("python3|  a  ", "a");
}

static void app_name__later_arguments_are_not_looked_at(void **state)
{
	char line[TEXT_MAX] = "python3";

	(void)state;
	for (size_t i = 0; i < 200; i++)
		strcat(line, "|-u");
	strcat(line, "|a.py");
	expect_app(line, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(app_name__script_is_its_file),
		cmocka_unit_test(app_name__module_is_its_name),
		cmocka_unit_test(app_name__code_and_prompts_have_none),
		cmocka_unit_test(app_name__children_of_a_library_are_their_parents),
		cmocka_unit_test(app_name__servers_are_named_by_their_application),
		cmocka_unit_test(app_name__celery_and_ray),
		cmocka_unit_test(app_name__launchers_are_named_by_their_script),
		cmocka_unit_test(app_name__titles_of_servers),
		cmocka_unit_test(app_name__is_bounded_and_clean),
		cmocka_unit_test(app_name__later_arguments_are_not_looked_at),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
