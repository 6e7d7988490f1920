/* SPDX-License-Identifier: BSD-2-Clause */
#include "reader/gpu_export.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/json_writer.h"
#include "export/exports.h"

/* As columns are called. */
static const char *const value_name[GPU_VALUES] = {[GPU_CALLS] = "calls",
						   [GPU_HOST] = "host_ns",
						   [GPU_WAIT] = "wait_ns",
						   [GPU_BYTES] = "bytes",
						   [GPU_LIVE] = "inuse_space",
						   [GPU_BLOCKS] = "inuse_objects"};

static const char *const view_name[] = {[GPU_VIEW_ALL] = "all",
					[GPU_VIEW_SYNCS] = "syncs",
					[GPU_VIEW_COPIES] = "copies",
					[GPU_VIEW_KERNELS] = "kernels",
					[GPU_VIEW_COLLECTIVES] = "collectives",
					[GPU_VIEW_MEMORY] = "memory"};

/* Returns what the word of a group is. */
static const char *word_name(enum gpu_view view)
{
	return view == GPU_VIEW_KERNELS ? "kernel" : view == GPU_VIEW_COPIES ? "direction" : "api";
}

static const struct code *code_at(const struct gpu_shown *shown, uint32_t code)
{
	return &shown->table->code.code[code];
}

static uint64_t captured_of(const struct gpu_call *call)
{
	return call->is_whole ? call->sums->captured : 0;
}

static uint64_t nodes_of(const struct gpu_call *call)
{
	return call->is_whole ? call->sums->nodes : 0;
}

static int64_t clamped(uint64_t number)
{
	return number > INT64_MAX ? INT64_MAX : (int64_t)number;
}

/* ---- CSV ---- */

static void csv_text(const char *text, FILE *out)
{
	export_csv_text(text, out);
	putc(',', out);
}

static void csv_number(double number, FILE *out)
{
	if (isfinite(number))
		fprintf(out, ",%.1f", number);
	else
		putc(',', out);
}

static void csv_code(const struct gpu_shown *shown, uint32_t number, FILE *out)
{
	const struct code_table *table = &shown->table->code;
	const struct code *code = code_at(shown, number);

	csv_text(code_text(table, code->name), out);
	csv_text(code_text(table, code->file), out);
	fprintf(out, "%" PRIu32, code_line(code));
}

static void csv_line(const struct gpu_shown *shown, const struct gpu_line *line, FILE *out)
{
	const struct gpu_table *table = shown->table;
	const struct gpu_call *call = &table->call[line->call];

	fprintf(out, "%" PRId64 ",", call->pid);
	csv_text(gpu_text(table, call->comm), out);
	csv_text(gpu_text(table, call->device), out);
	fprintf(out, "%s,", gpu_class_name(call->class));
	csv_text(gpu_text(table, call->api), out);
	csv_text(gpu_text(table, call->direction), out);
	csv_text(gpu_text(table, call->kernel), out);
	csv_code(shown, line->code, out);
	for (unsigned int i = 0; i < GPU_VALUES; i++) {
		fprintf(out, ",%" PRId64, line->value[i]);
		if (i < GPU_LIVE)
			csv_number(gpu_line_error(table, line, i), out);
	}
	for (unsigned int i = 0; i < GPU_VALUES; i++)
		fprintf(out, ",%" PRId64, call->value[i]);
	fprintf(out, ",%" PRIu64 ",%" PRIu64, captured_of(call), nodes_of(call));
	csv_number(gpu_call_mean(call), out);
	csv_number(gpu_call_quantile(call, 0.5), out);
	csv_number(gpu_call_quantile(call, 0.99), out);
	fputs("\r\n", out);
}

static void csv_group(const struct gpu_shown *shown, const struct gpu_group *group, FILE *out)
{
	csv_text(gpu_text(shown->table, group->word), out);
	csv_code(shown, group->code, out);
	for (unsigned int i = 0; i < GPU_VALUES; i++) {
		fprintf(out, ",%" PRId64, group->value[i]);
		/* The sums of a kernel are exact. */
		if (i < GPU_LIVE)
			csv_number(shown->view == GPU_VIEW_KERNELS ? 0 : sqrt(group->variance[i]),
				   out);
	}
	if (shown->view == GPU_VIEW_KERNELS) {
		fprintf(out, ",%" PRId64, group->line_value[GPU_CALLS]);
		csv_number(sqrt(group->line_variance[GPU_CALLS]), out);
	}
	fputs("\r\n", out);
}

static void csv_values_head(const char *before, const char *after, FILE *out)
{
	for (unsigned int i = 0; i < GPU_VALUES; i++) {
		fprintf(out, ",%s%s", before, value_name[i]);
		if (after && i < GPU_LIVE)
			fprintf(out, ",%s%s", value_name[i], after);
	}
}

int gpu_print_csv(const struct gpu_shown *shown, FILE *out)
{
	const struct gpu_table *table = shown->table;

	if (shown->view != GPU_VIEW_ALL) {
		fprintf(out, "%s,name,file,line", word_name(shown->view));
		csv_values_head("", "_error", out);
		if (shown->view == GPU_VIEW_KERNELS)
			fputs(",line_calls,line_calls_error", out);
		fputs("\r\n", out);
		for (uint32_t i = 0; i < shown->groups->count; i++)
			csv_group(shown, &shown->groups->group[i], out);
		return ferror(out) ? -EIO : 0;
	}
	fputs("pid,comm,device,class,api,direction,kernel,name,file,line", out);
	csv_values_head("", "_error", out);
	csv_values_head("call_", NULL, out);
	fputs(",call_captured,call_nodes,call_mean_ns,call_p50_ns,call_p99_ns\r\n", out);
	for (uint32_t i = 0; i < table->line_count; i++)
		csv_line(shown, &table->line[i], out);
	return ferror(out) ? -EIO : 0;
}

/* ---- JSON ---- */

static void json_code(struct json_writer *json, const struct gpu_shown *shown, uint32_t number)
{
	const struct code *code = code_at(shown, number);

	json_put_string(json, "name", code_text(&shown->table->code, code->name));
	json_put_string(json, "file", code_text(&shown->table->code, code->file));
	json_put_int(json, "line", code_line(code));
}

static void json_values(struct json_writer *json, const int64_t value[GPU_VALUES])
{
	for (unsigned int i = 0; i < GPU_VALUES; i++)
		json_put_int(json, value_name[i], value[i]);
}

static void json_error(struct json_writer *json, enum gpu_value value, double error)
{
	char key[32];

	snprintf(key, sizeof(key), "%s_error", value_name[value]);
	json_put_double(json, key, error);
}

static void json_line(struct json_writer *json, const struct gpu_shown *shown,
		      const struct gpu_line *line)
{
	json_newline(json);
	json_open(json, '{');
	json_code(json, shown, line->code);
	json_values(json, line->value);
	for (unsigned int i = 0; i < GPU_LIVE; i++)
		json_error(json, i, gpu_line_error(shown->table, line, i));
	json_close(json, '}');
}

static void json_call(struct json_writer *json, const struct gpu_shown *shown,
		      const struct gpu_call *call)
{
	const struct gpu_table *table = shown->table;

	json_newline(json);
	json_open(json, '{');
	json_put_int(json, "pid", call->pid);
	json_put_string(json, "comm", gpu_text(table, call->comm));
	json_put_string(json, "device", gpu_text(table, call->device));
	json_put_string(json, "class", gpu_class_name(call->class));
	json_put_string(json, "api", gpu_text(table, call->api));
	json_put_string(json, "direction", gpu_text(table, call->direction));
	json_put_string(json, "kernel", gpu_text(table, call->kernel));
	json_values(json, call->value);
	json_put_int(json, "captured", clamped(captured_of(call)));
	json_put_int(json, "nodes", clamped(nodes_of(call)));
	json_put_double(json, "mean_ns", gpu_call_mean(call));
	json_put_double(json, "p50_ns", gpu_call_quantile(call, 0.5));
	json_put_double(json, "p99_ns", gpu_call_quantile(call, 0.99));
	json_key(json, "lines");
	json_open(json, '[');
	for (uint32_t i = 0; i < call->line_count; i++)
		json_line(json, shown, &table->line[call->first_line + i]);
	json_close(json, ']');
	json_close(json, '}');
}

/* The frames that called, from the line outwards. */
static void json_stack(struct json_writer *json, const struct gpu_shown *shown,
		       const struct gpu_group *group)
{
	const struct profile *profile = shown->table->profile;
	const struct stack *stack;

	json_key(json, "stack");
	json_open(json, '[');
	if (group->stack != GPU_NO_STACK) {
		stack = &profile->stacks.stack[group->stack];
		for (uint32_t i = 0; i < stack->count; i++) {
			const struct frame *frame = &profile->stacks.location[stack->location[i]];

			json_open(json, '{');
			json_put_string(json, "name", frame_name(profile, frame));
			json_put_string(json, "file", frame_file(profile, frame));
			json_put_int(json, "line", frame->line);
			json_close(json, '}');
		}
	}
	json_close(json, ']');
}

static void json_group(struct json_writer *json, const struct gpu_shown *shown,
		       const struct gpu_group *group)
{
	json_newline(json);
	json_open(json, '{');
	json_put_string(json, word_name(shown->view), gpu_text(shown->table, group->word));
	json_code(json, shown, group->code);
	json_values(json, group->value);
	if (shown->view == GPU_VIEW_KERNELS) {
		json_put_int(json, "line_calls", group->line_value[GPU_CALLS]);
		json_put_double(json, "line_calls_error", sqrt(group->line_variance[GPU_CALLS]));
	} else {
		for (unsigned int i = 0; i < GPU_LIVE; i++)
			json_error(json, i, sqrt(group->variance[i]));
	}
	if (shown->view == GPU_VIEW_SYNCS)
		json_put_double(json, "wall_share",
				shown->duration_ns ? (double)group->value[GPU_WAIT] /
							     (double)shown->duration_ns
						   : NAN);
	json_stack(json, shown, group);
	json_close(json, '}');
}

int gpu_print_json(const struct gpu_shown *shown, FILE *out)
{
	const bool is_all = shown->view == GPU_VIEW_ALL;
	struct json_writer json = json_writer_to(out);

	json_open(&json, '{');
	json_put_string(&json, "kind", "cuda");
	json_put_string(&json, "view", view_name[shown->view]);
	json_put_string(&json, "profile", shown->title);
	json_put_double(&json, "seconds", (double)shown->duration_ns / NS_PER_SEC);
	json_put_int(&json, "launches_are_scaled", shown->is_scaled);
	json_put_string(&json, "times", "host");
	json_key(&json, is_all ? "calls" : "rows");
	json_open(&json, '[');
	for (uint32_t i = 0; is_all && i < shown->table->call_count; i++)
		json_call(&json, shown, &shown->table->call[i]);
	for (uint32_t i = 0; !is_all && i < shown->groups->count; i++)
		json_group(&json, shown, &shown->groups->group[i]);
	json_close(&json, ']');
	json_close(&json, '}');
	putc('\n', out);
	return json_finish(&json);
}

/* ---- SQL ---- */

static const char schema[] =
	"CREATE TABLE recording (profile TEXT, seconds REAL);\n"
	"CREATE TABLE calls (id INTEGER PRIMARY KEY, pid INTEGER, comm TEXT, device TEXT, "
	"class TEXT, api TEXT, direction TEXT, kernel TEXT, calls INTEGER, host_ns INTEGER, "
	"wait_ns INTEGER, bytes INTEGER, inuse_space INTEGER, inuse_objects INTEGER, captured "
	"INTEGER, nodes INTEGER, mean_ns REAL, p50_ns REAL, p99_ns REAL);\n"
	"CREATE TABLE lines (call INTEGER REFERENCES calls(id), name TEXT, file TEXT, line "
	"INTEGER, calls INTEGER, calls_error REAL, host_ns INTEGER, host_ns_error REAL, wait_ns "
	"INTEGER, wait_ns_error REAL, bytes INTEGER, bytes_error REAL, inuse_space INTEGER, "
	"inuse_objects INTEGER);\n"
	"CREATE TABLE times (call INTEGER REFERENCES calls(id), from_ns INTEGER, to_ns INTEGER, "
	"calls INTEGER);\n";

/* Texts have no NUL and no end of a line: base/utf8.h. */
static void sql_text(const char *text, FILE *out)
{
	putc('\'', out);
	for (; *text; text++) {
		if (*text == '\'')
			putc('\'', out);
		putc(*text, out);
	}
	putc('\'', out);
}

static void sql_number(double number, FILE *out)
{
	if (isfinite(number))
		fprintf(out, ",%.1f", number);
	else
		fputs(",NULL", out);
}

static void sql_call(const struct gpu_shown *shown, uint32_t number, FILE *out)
{
	const struct gpu_table *table = shown->table;
	const struct gpu_call *call = &table->call[number];
	const char *const text[] = {
		gpu_text(table, call->comm),	  gpu_text(table, call->device),
		gpu_class_name(call->class),	  gpu_text(table, call->api),
		gpu_text(table, call->direction), gpu_text(table, call->kernel)};

	fprintf(out, "INSERT INTO calls VALUES(%" PRIu32 ",%" PRId64, number + 1, call->pid);
	for (size_t i = 0; i < ARRAY_SIZE(text); i++) {
		putc(',', out);
		sql_text(text[i], out);
	}
	for (unsigned int i = 0; i < GPU_VALUES; i++)
		fprintf(out, ",%" PRId64, call->value[i]);
	fprintf(out, ",%" PRId64 ",%" PRId64, clamped(captured_of(call)), clamped(nodes_of(call)));
	sql_number(gpu_call_mean(call), out);
	sql_number(gpu_call_quantile(call, 0.5), out);
	sql_number(gpu_call_quantile(call, 0.99), out);
	fputs(");\n", out);
}

static void sql_line(const struct gpu_shown *shown, const struct gpu_line *line, FILE *out)
{
	const struct code_table *table = &shown->table->code;
	const struct code *code = code_at(shown, line->code);

	fprintf(out, "INSERT INTO lines VALUES(%" PRIu32 ",", line->call + 1);
	sql_text(code_text(table, code->name), out);
	putc(',', out);
	sql_text(code_text(table, code->file), out);
	fprintf(out, ",%" PRIu32, code_line(code));
	for (unsigned int i = 0; i < GPU_VALUES; i++) {
		fprintf(out, ",%" PRId64, line->value[i]);
		if (i < GPU_LIVE)
			sql_number(gpu_line_error(shown->table, line, i), out);
	}
	fputs(");\n", out);
}

static void sql_times(const struct gpu_call *call, uint32_t number, FILE *out)
{
	for (unsigned int i = 0; i < PP_CUDA_HISTOGRAM && call->is_whole; i++)
		if (call->sums->histogram[i])
			fprintf(out,
				"INSERT INTO times VALUES(%" PRIu32 ",%" PRIu64 ",%" PRIu64
				",%" PRId64 ");\n",
				number + 1, cuda_line_bucket_ns(i), cuda_line_bucket_ns(i + 1),
				clamped(call->sums->histogram[i]));
}

int gpu_print_sql(const struct gpu_shown *shown, FILE *out)
{
	const struct gpu_table *table = shown->table;

	fprintf(out,
		"-- Times are the host's: how long a kernel takes on the device is not in "
		"them.\nBEGIN;\n%sINSERT INTO recording VALUES(",
		schema);
	sql_text(shown->title, out);
	fprintf(out, ",%.9f);\n", (double)shown->duration_ns / NS_PER_SEC);
	for (uint32_t i = 0; i < table->call_count; i++)
		sql_call(shown, i, out);
	for (uint32_t i = 0; i < table->line_count; i++)
		sql_line(shown, &table->line[i], out);
	for (uint32_t i = 0; i < table->call_count; i++)
		sql_times(&table->call[i], i, out);
	fputs("COMMIT;\n", out);
	return ferror(out) ? -EIO : 0;
}
