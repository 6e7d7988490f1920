/* SPDX-License-Identifier: BSD-2-Clause */
/* A thread that serves several interpreters in turn, each with a thread state that it made itself,
 * as web servers do that embed Python.  Loaded by ctypes.PyDLL; the functions are CPython's, which
 * no header is needed for. */
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

typedef void state;
typedef void interpreter;

state *Py_NewInterpreter(void);
state *PyThreadState_New(interpreter *in);
state *PyThreadState_Swap(state *to);
interpreter *PyInterpreterState_Head(void);
interpreter *PyInterpreterState_Next(interpreter *from);
void PyEval_AcquireThread(state *of);
void PyEval_ReleaseThread(state *of);
int PyRun_SimpleString(const char *code);

#define CODE_BYTES 4096

static struct {
	char first[CODE_BYTES], second[CODE_BYTES];
	interpreter *in[2];
	state *made[2]; /* by the thread that called begin(): they keep the interpreters alive */
	const char *stop;
	pthread_t thread;
} all;

static void *serve(void *unused)
{
	state *mine[2] = {PyThreadState_New(all.in[0]), PyThreadState_New(all.in[1])};
	const char *code[2] = {all.first, all.second};

	/* The last round begins when the file is there: both see it. */
	for (int is_last = 0; !is_last;) {
		is_last = !access(all.stop, F_OK);
		for (int i = 0; i < 2; i++) {
			PyEval_AcquireThread(mine[i]);
			PyRun_SimpleString(code[i]);
			PyEval_ReleaseThread(mine[i]);
		}
	}
	return unused;
}

/* Makes two interpreters and the thread.  With the GIL. */
int begin(const char *first, const char *second, const char *stop)
{
	state *caller = PyThreadState_Swap(NULL);

	PyThreadState_Swap(caller);
	snprintf(all.first, sizeof(all.first), "%s", first);
	snprintf(all.second, sizeof(all.second), "%s", second);
	all.stop = stop;
	for (int i = 0; i < 2; i++) {
		all.made[i] = Py_NewInterpreter();
		PyThreadState_Swap(caller);
		if (!all.made[i])
			return 1;
		all.in[i] = PyInterpreterState_Head(); /* the newest */
	}
	return pthread_create(&all.thread, NULL, serve, NULL);
}

/* Without the GIL. */
int end(void)
{
	return pthread_join(all.thread, NULL);
}
