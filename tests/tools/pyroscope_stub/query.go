// SPDX-License-Identifier: BSD-2-Clause
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"sort"
	"strconv"
	"strings"

	"connectrpc.com/connect"
	"github.com/google/pprof/profile"
	googlev1 "github.com/grafana/pyroscope/api/gen/proto/go/google/v1"
	querierv1 "github.com/grafana/pyroscope/api/gen/proto/go/querier/v1"
	"github.com/grafana/pyroscope/api/gen/proto/go/querier/v1/querierv1connect"
	typesv1 "github.com/grafana/pyroscope/api/gen/proto/go/types/v1"
	"google.golang.org/protobuf/proto"
)

// matcher: one of a selector's conditions.
type matcher struct {
	name, operator, value string
	regex                 *regexp.Regexp
}

var condition = regexp.MustCompile(`^\s*("(?:[^"\\]|\\.)*"|[^\s"=!~,{}]+)\s*(=~|!~|!=|=)\s*("(?:[^"\\]|\\.)*"|` + "`[^`]*`" + `)\s*(,|$)`)

// parseSelector reads {name="value",other=~"regex"}.
func parseSelector(text string) ([]matcher, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return nil, nil
	}
	inner, isOpen := strings.CutPrefix(text, "{")
	inner, isClosed := strings.CutSuffix(inner, "}")
	if !isOpen || !isClosed {
		return nil, fmt.Errorf("%q is no selector", text)
	}
	var found []matcher
	for strings.TrimSpace(inner) != "" {
		part := condition.FindStringSubmatch(inner)
		if part == nil {
			return nil, fmt.Errorf("unexpected %q in a selector", inner)
		}
		inner = inner[len(part[0]):]
		one := matcher{name: part[1], operator: part[2]}
		if name, err := strconv.Unquote(one.name); err == nil {
			one.name = name
		}
		var err error
		if one.value, err = strconv.Unquote(part[3]); err != nil {
			return nil, err
		}
		if strings.HasSuffix(one.operator, "~") {
			if one.regex, err = regexp.Compile("^(?:" + one.value + ")$"); err != nil {
				return nil, err
			}
		}
		found = append(found, one)
	}
	return found, nil
}

// parseKey takes keyOf() back.
func parseKey(key string) map[string]string {
	labels := map[string]string{}
	conditions, err := parseSelector(key)
	if err != nil {
		panic(err)
	}
	for _, one := range conditions {
		labels[one.name] = one.value
	}
	return labels
}

func isMatch(matchers []matcher, labels map[string]string) bool {
	for _, one := range matchers {
		value := labels[one.name]
		holds := value == one.value
		if one.regex != nil {
			holds = one.regex.MatchString(value)
		}
		if holds == strings.HasPrefix(one.operator, "!") {
			return false
		}
	}
	return true
}

type querier struct {
	querierv1connect.UnimplementedQuerierServiceHandler
	store *store
}

func refuse(err error) error { return connect.NewError(connect.CodeInvalidArgument, err) }

// choose gives what fits any of the selectors and lies between two times (ms; without an end: all).
func (q *querier) choose(selectors []string, start, end int64) ([]kept, error) {
	if start > end {
		return nil, refuse(errors.New("start is behind end"))
	}
	sets := [][]matcher{}
	for _, text := range selectors {
		one, err := parseSelector(text)
		if err != nil {
			return nil, refuse(err)
		}
		sets = append(sets, one)
	}
	if len(sets) == 0 {
		sets = append(sets, nil)
	}
	q.store.mutex.Lock()
	defer q.store.mutex.Unlock()
	var found []kept
	for _, series := range q.store.kept {
		for _, one := range series {
			ms := one.profile.TimeNanos / 1e6
			if end != 0 && (ms < start || ms >= end) {
				continue
			}
			for _, set := range sets {
				if isMatch(set, one.labels) {
					found = append(found, one)
					break
				}
			}
		}
	}
	return found, nil
}

// typeIDs of a profile, one for each value of its samples.
func typeIDs(one kept) []string {
	period := ":"
	if one.profile.PeriodType != nil {
		period = one.profile.PeriodType.Type + ":" + one.profile.PeriodType.Unit
	}
	var ids []string
	for _, value := range one.profile.SampleType {
		ids = append(ids, fmt.Sprintf("%s:%s:%s:%s", one.labels["__name__"], value.Type, value.Unit, period))
	}
	return ids
}

func (q *querier) ProfileTypes(_ context.Context, request *connect.Request[querierv1.ProfileTypesRequest]) (*connect.Response[querierv1.ProfileTypesResponse], error) {
	found, err := q.choose(nil, request.Msg.Start, request.Msg.End)
	if err != nil {
		return nil, err
	}
	ids := map[string]bool{}
	for _, one := range found {
		for _, id := range typeIDs(one) {
			ids[id] = true
		}
	}
	answer := &querierv1.ProfileTypesResponse{}
	for _, id := range sorted(ids) {
		part := strings.Split(id, ":")
		answer.ProfileTypes = append(answer.ProfileTypes, &typesv1.ProfileType{ID: id, Name: part[0], SampleType: part[1],
			SampleUnit: part[2], PeriodType: part[3], PeriodUnit: part[4]})
	}
	return connect.NewResponse(answer), nil
}

func (q *querier) LabelNames(_ context.Context, request *connect.Request[typesv1.LabelNamesRequest]) (*connect.Response[typesv1.LabelNamesResponse], error) {
	found, err := q.choose(request.Msg.Matchers, request.Msg.Start, request.Msg.End)
	if err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for _, one := range found {
		for name := range one.labels {
			names[name] = true
		}
	}
	return connect.NewResponse(&typesv1.LabelNamesResponse{Names: sorted(names)}), nil
}

func (q *querier) LabelValues(_ context.Context, request *connect.Request[typesv1.LabelValuesRequest]) (*connect.Response[typesv1.LabelValuesResponse], error) {
	found, err := q.choose(request.Msg.Matchers, request.Msg.Start, request.Msg.End)
	if err != nil {
		return nil, err
	}
	values := map[string]bool{}
	for _, one := range found {
		if value, has := one.labels[request.Msg.Name]; has {
			values[value] = true
		}
	}
	return connect.NewResponse(&typesv1.LabelValuesResponse{Names: sorted(values)}), nil
}

func (q *querier) Series(_ context.Context, request *connect.Request[querierv1.SeriesRequest]) (*connect.Response[querierv1.SeriesResponse], error) {
	found, err := q.choose(request.Msg.Matchers, request.Msg.Start, request.Msg.End)
	if err != nil {
		return nil, err
	}
	keys := map[string]bool{}
	for _, one := range found {
		labels := one.labels
		if len(request.Msg.LabelNames) != 0 {
			labels = map[string]string{}
			for _, name := range request.Msg.LabelNames {
				if value, has := one.labels[name]; has {
					labels[name] = value
				}
			}
		}
		keys[keyOf(labels)] = true
	}
	answer := &querierv1.SeriesResponse{}
	for _, key := range sorted(keys) {
		labels, set := parseKey(key), &typesv1.Labels{}
		names := map[string]bool{}
		for name := range labels {
			names[name] = true
		}
		for _, name := range sorted(names) {
			set.Labels = append(set.Labels, &typesv1.LabelPair{Name: name, Value: labels[name]})
		}
		answer.LabelsSet = append(answer.LabelsSet, set)
	}
	return connect.NewResponse(answer), nil
}

// SelectMergeProfile has the values of one type.  Of times it tells the end of what was asked for, and no period and no
// duration of use: what they are with the real server was not measured.
func (q *querier) SelectMergeProfile(_ context.Context, request *connect.Request[querierv1.SelectMergeProfileRequest]) (*connect.Response[googlev1.Profile], error) {
	if len(strings.Split(request.Msg.ProfileTypeID, ":")) != 5 {
		return nil, refuse(fmt.Errorf("profile-type selection must be of the form <name>:<type>:<unit>:<period-type>:"+
			"<period-unit>, got %q", request.Msg.ProfileTypeID))
	}
	found, err := q.choose([]string{request.Msg.LabelSelector}, request.Msg.Start, request.Msg.End)
	if err != nil {
		return nil, err
	}
	var parts []*profile.Profile
	for _, one := range found {
		for i, id := range typeIDs(one) {
			if id == request.Msg.ProfileTypeID {
				parts = append(parts, onlyType(one.profile, i))
			}
		}
	}
	answer := &googlev1.Profile{StringTable: []string{""}}
	if len(parts) != 0 {
		if answer, err = merged(parts, request.Msg.End); err != nil {
			return nil, connect.NewError(connect.CodeUnknown, err)
		}
	}
	return connect.NewResponse(answer), nil
}

func onlyType(whole *profile.Profile, index int) *profile.Profile {
	one := without(whole, whole.SampleType[index:index+1])
	for _, sample := range whole.Sample {
		if sample.Value[index] != 0 {
			one.Sample = append(one.Sample, &profile.Sample{Location: sample.Location, Value: sample.Value[index : index+1]})
		}
	}
	return one
}

func merged(parts []*profile.Profile, endMs int64) (*googlev1.Profile, error) {
	sum, err := profile.Merge(parts)
	if err != nil {
		return nil, err
	}
	sum.TimeNanos, sum.DurationNanos = endMs*1e6, 0
	var raw bytes.Buffer
	if err := sum.WriteUncompressed(&raw); err != nil {
		return nil, err
	}
	answer := &googlev1.Profile{}
	return answer, proto.Unmarshal(raw.Bytes(), answer)
}

func sorted(set map[string]bool) []string {
	names := []string{}
	for name := range set {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}
