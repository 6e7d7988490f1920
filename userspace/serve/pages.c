/* SPDX-License-Identifier: BSD-2-Clause */
#include "serve/pages.h"

#include "base/kinds.h"
#include "serve_page.h"

/* Of the history's page: files of its own origin alone.  The flame graph's page, which it frames,
 * has a policy and an origin of its own. */
static const char history_policy[] =
	"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
	"frame-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; "
	"form-action 'none'";

#define SERVED_ROW(id, number, name, needs, captures, is_served, ...)                              \
	ROW_##is_served("/debug/pprof/" name "?seconds=10", "kind " name ", of the next 10 s")
#define ROW(link, text) "<tr><td><a href=\"" link "\">" link "</a></td><td>" text "</td></tr>\n"
#define ROW_1(link, text) ROW(link, text)
#define ROW_0(link, text)

void pages_index(struct answer *answer)
{
	static const char page[] =
		"<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\">"
		"<title>pyprofd</title>\n"
		"<style>body{font:15px sans-serif;margin:2em}"
		"td{padding:.2em 1.5em .2em 0}</style>\n"
		"<h1>pyprofd</h1>\n"
		"<p><a href=\"/\">The page of the history</a></p>\n"
		"<p>Profiles in pprof's format: <code>go tool pprof URL</code>, "
		"<code>pyprof report FILE</code>. "
		"<code>pid=1234</code> selects a process, <code>seconds</code> is 30 or up to "
		"3600.</p>\n<table>\n"
		ROW("/debug/pprof/profile?seconds=10", "CPU time, of the next 10 s")
		PP_PROFILES(SERVED_ROW, SERVED_ROW)
		ROW("/api/v1/profile?from=10m&amp;kind=cpu&amp;format=pprof",
		    "the last 10 minutes of the store; format: pprof, json, folded, html")
		ROW("/api/v1/profile?from=10m&amp;kind=cpu&amp;format=html",
		    "the same as a flame graph")
		ROW("/debug/pprof/profile?seconds=10&amp;format=html",
		    "the next 10 s as a flame graph")
		ROW("/api/v1/strip?from=1h&amp;kind=cpu&amp;points=60",
		    "what was used over time, an hour by the minute, as JSON")
		ROW("/api/v1/labels?from=1h&amp;kind=cpu",
		    "which labels and processes the store has, and how much each one is, as JSON")
		ROW("/api/v1/waits?from=1h",
		    "where the time of each process went, from the ledgers, as JSON")
		ROW("/api/v1/self", "who asks, what that one sees and what there is, as JSON")
		ROW("/api/v1/files?from=10m&amp;kind=cpu",
		    "the names of the store's files; each is at /api/v1/files/NAME")
		ROW("/metrics", "for Prometheus")
		ROW("/healthz", "this program answers")
		ROW("/readyz", "and so does pyprofd")
		"</table>\n</html>\n";

	answer_say(answer, 200, "%s", page);
	answer->type = "text/html; charset=utf-8";
}

static void give(struct answer *answer, const char *text, const char *type)
{
	answer_say(answer, 200, "%s", text);
	answer->type = type;
	answer->policy = history_policy;
}

void pages_history(struct answer *answer)
{
	give(answer, serve_page_html, "text/html; charset=utf-8");
}

void pages_history_style(struct answer *answer)
{
	give(answer, serve_page_css, "text/css; charset=utf-8");
}

void pages_history_script(struct answer *answer)
{
	give(answer, serve_page_js, "text/javascript; charset=utf-8");
}
