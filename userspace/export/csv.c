/* SPDX-License-Identifier: BSD-2-Clause */
/* Sources: RFC 4180; OWASP, "CSV Injection", for what a spreadsheet takes for a formula. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "export/exports.h"

void export_csv_text(const char *text, FILE *out)
{
	putc('"', out);
	if (text[0] && strchr("=+-@\t\r", text[0]))
		putc('\'', out);
	for (; *text; text++) {
		if (*text == '"')
			putc('"', out);
		putc(*text, out);
	}
	putc('"', out);
}

static void put_share(const struct totals *totals, const struct totals_sum *sum, FILE *out)
{
	double error = totals_share_error(totals, sum);

	fprintf(out, ",%" PRId64 ",%.6f,", sum->value, totals_share(totals, sum));
	if (error >= 0)
		fprintf(out, "%.6f", error);
}

int export_csv(const struct totals *totals, const struct export_facts *facts, FILE *out)
{
	(void)facts;
	fputs("name,file,line,module,class,group,self,self_share,self_error,total,total_share,"
	      "total_error,self_samples,total_samples\r\n",
	      out);
	for (uint32_t i = 0; i < totals->count; i++) {
		const struct totals_row *row = &totals->row[i];
		const struct code *code = &totals->code.code[row->code];

		if (!row->total.value)
			continue;
		export_csv_text(code_text(&totals->code, code->name), out);
		putc(',', out);
		export_csv_text(code_text(&totals->code, code->file), out);
		fprintf(out, ",%" PRIu32 ",", code_line(code));
		export_csv_text(code_text(&totals->code, code->module), out);
		fprintf(out, ",%s,", frame_class_name((enum frame_class)code->class));
		export_csv_text(totals->groups.by.keys
					? code_text(&totals->code,
						    totals->groups.group[row->group].label)
					: "",
				out);
		put_share(totals, &row->self, out);
		put_share(totals, &row->total, out);
		fprintf(out, ",%" PRId64 ",%" PRId64 "\r\n", row->self.samples, row->total.samples);
	}
	return ferror(out) ? -EIO : 0;
}
