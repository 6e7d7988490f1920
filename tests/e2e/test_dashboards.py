# SPDX-License-Identifier: BSD-2-Clause
"""/metrics through the parser of Prometheus' own client, and deploy/'s dashboard and alerts, which
ask only for what is there."""
import json
import os
import re
import subprocess

import harness
import test_live
from collector import Collector
from test_pyprof import python_with
from test_serve import Server

DASHBOARD = os.path.join(harness.TOP, "deploy", "grafana", "pyprofd.json")
RULES = os.path.join(harness.TOP, "deploy", "prometheus", "pyprofd.rules.yml")
# Writes [[name, type, help, [[sample's name, labels, value], ...]], ...].
PARSE = ("import json, sys\n"
         "from prometheus_client.parser import text_string_to_metric_families as parse\n"
         "print(json.dumps([[f.name, f.type, f.documentation, [[s.name, s.labels, s.value] "
         "for s in f.samples]] for f in parse(sys.stdin.read())]))\n")
WORDS = {"and", "on", "by", "or", "sum", "rate", "count", "increase", "histogram_quantile",
         "label_values", "unless"}


def scraped(python):
    """What Prometheus would have: {sample's name: [labels, ...]}, and the metrics as parsed."""
    sink = Collector("otlp")
    with Server("--state", os.path.join(harness.temporary(), "state"), "--set",
                "push.test.type=otlp", "--set", "push.test.url=" + sink.url,
                events="cpu,offcpu,gil") as server, test_live.Worker():
        harness.wait_for(lambda: re.search(
            rb'^pyprofd_push_requests_total{sink="test",code="200"} [1-9]',
            server.get("/metrics")[1], re.M), 60, "a window that is pushed", 0.2)
        text = server.get("/metrics")[1]
        stored = sum(os.path.getsize(os.path.join(base, name))
                     for base, _, names in os.walk(os.path.join(server.folder, "store"))
                     for name in names if name.endswith(".pb.gz"))
    done = subprocess.run([python, "-c", PARSE], input=text, stdout=subprocess.PIPE, check=True)
    found = {}
    families = json.loads(done.stdout)
    for _, _, _, samples in families:
        for name, labels, value in samples:
            found.setdefault(name, []).append((labels, value))
    return found, families, stored


def asked():
    """(where, PromQL) of the dashboard and the rules."""
    with open(DASHBOARD, encoding="utf-8") as file:
        dashboard = json.load(file)
    for panel in dashboard["panels"]:
        for target in panel.get("targets", []):
            yield panel["title"], target["expr"]
    for variable in dashboard["templating"]["list"]:
        if variable["type"] == "query":
            assert variable["query"]["query"] == variable["definition"], variable
            yield variable["name"], variable["definition"]
    with open(RULES, encoding="utf-8") as file:
        text = file.read()
    rules = re.findall(r"^      - alert: (\w+)\n        expr: (.+)$", text, re.M)
    assert len(rules) == text.count("alert:") == text.count("expr:") >= 5, rules
    yield from rules


def metrics_of(expression):
    """[(name, {label: values or None})] of PromQL; fails for what is no name, function or label."""
    assert expression.count("(") == expression.count(")"), expression
    bare = re.sub(r"\[[^\]]*\]", "", expression)
    bare = re.sub(r"\b(by|on) \([^)]*\)", "", bare)
    found = []
    for name, labels in re.findall(r"([a-zA-Z_][a-zA-Z0-9_]*)(?:\{([^}]*)\})?",
                                   re.sub(r"(label_values\([^,]*), \w+", r"\1", bare)):
        if name in WORDS:
            continue
        matchers = dict(re.findall(r'(\w+)=~?"([^"]*)"', labels))
        assert len(matchers) == len([part for part in labels.split('",') if part]), expression
        found.append((name, matchers))
    assert found, expression
    return found


def test_what_is_asked_for_is_there():
    python = python_with("prometheus_client")
    found, families, stored = scraped(python)
    for name, kind, text, samples in families:
        assert kind in ("counter", "gauge", "histogram") and text and samples, name
        assert len({json.dumps(labels, sort_keys=True) + sample
                    for sample, labels, _ in samples}) == len(samples), name
    assert found["pyprofd_store_bytes"][0][1] >= stored * 0.5 > 0, (found, stored)
    assert 0 < found["pyprofd_store_newest_seconds"][0][1] < 30
    assert found["pyprofd_store_oldest_seconds"][0][1] < 60
    assert 0 <= found["pyprofd_push_lag_seconds"][0][1] < 60
    checked = 0
    for where, expression in asked():
        for name, matchers in metrics_of(expression):
            assert name in found, (where, name)
            checked += 1
            for label, values in matchers.items():
                if label == "instance":  # Prometheus adds it
                    continue
                there = {labels[label] for labels, _ in found[name]}
                for value in values.split("|"):
                    assert value in there, (where, name, label, value, there)
        for labels in re.findall(r"\bby \(([^)]*)\)", expression):
            name = metrics_of(expression)[0][0]
            known = {"instance"} | set().union(*(labels for labels, _ in found[name]))
            assert set(re.split(r", ?", labels)) <= known or "on (" in expression, (where, labels)
    assert checked > 30, checked


def test_dashboard_has_no_panel_over_another():
    with open(DASHBOARD, encoding="utf-8") as file:
        dashboard = json.load(file)
    taken, ids = set(), set()
    for panel in dashboard["panels"]:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24, panel["title"]
        cells = {(x, y) for x in range(place["x"], place["x"] + place["w"])
                 for y in range(place["y"], place["y"] + place["h"])}
        assert not cells & taken and panel["id"] not in ids, panel["title"]
        taken |= cells
        ids.add(panel["id"])
        assert panel["type"] == "row" or panel["targets"], panel["title"]
