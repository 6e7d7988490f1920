// SPDX-License-Identifier: BSD-2-Clause
package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"sort"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"connectrpc.com/connect"
	"github.com/google/pprof/profile"
	googlev1 "github.com/grafana/pyroscope/api/gen/proto/go/google/v1"
	pushv1 "github.com/grafana/pyroscope/api/gen/proto/go/push/v1"
	typesv1 "github.com/grafana/pyroscope/api/gen/proto/go/types/v1"
	"google.golang.org/protobuf/proto"
)

// The real server's defaults.
const (
	labelsMax          = 30
	labelNameMaxBytes  = 1024
	labelValueMaxBytes = 2048
	profileMaxBytes    = 4 << 20 // unpacked
	samplesMax         = 16000   // of a profile
	sampleLabelsMax    = 100
	depthMax           = 1000 // what is below is cut off without a word
	textMaxBytes       = 65535
	olderMax           = time.Hour
	newerMax           = 10 * time.Minute
)

var (
	metricName = regexp.MustCompile(`^[a-zA-Z_:][a-zA-Z0-9_:]*$`)
	uuid       = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)
)

// refusal: why a push is not taken, with its status.
type refusal struct {
	code   connect.Code
	reason string // in the counts
	text   string
}

func invalid(reason, format string, values ...any) *refusal {
	return &refusal{connect.CodeInvalidArgument, reason, fmt.Sprintf(format, values...)}
}

// bucket: what a tenant may push now.
type bucket struct {
	bytes float64
	at    time.Time
}

type pusher struct {
	store       *store
	multitenant bool
	rate        float64
	mutex       sync.Mutex
	buckets     map[string]*bucket
}

// allow: burst is half a second's worth, so that a profile above it is refused for ever.
func (p *pusher) allow(tenant string, size int) bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	now, burst := time.Now(), p.rate/2
	b := p.buckets[tenant]
	if b == nil {
		b = &bucket{burst, now}
		p.buckets[tenant] = b
	}
	b.bytes = min(burst, b.bytes+now.Sub(b.at).Seconds()*p.rate)
	b.at = now
	if float64(size) > b.bytes {
		return false
	}
	b.bytes -= float64(size)
	return true
}

// Push takes all of a request or nothing.
func (p *pusher) Push(_ context.Context, request *connect.Request[pushv1.PushRequest]) (*connect.Response[pushv1.PushResponse], error) {
	tenant := request.Header().Get("X-Scope-OrgID")
	taken, refused := p.take(tenant, request.Msg)
	p.store.note(request.Msg, taken, refused)
	if refused != nil {
		return nil, connect.NewError(refused.code, errors.New(refused.text))
	}
	return connect.NewResponse(&pushv1.PushResponse{}), nil
}

// pushed: a profile of one series.
type pushed struct {
	labels  map[string]string
	id      string
	raw     []byte // unpacked
	profile *profile.Profile
}

func (p *pusher) take(tenant string, request *pushv1.PushRequest) ([]pushed, *refusal) {
	if tenant == "" && p.multitenant {
		return nil, &refusal{connect.CodeUnauthenticated, "tenant", "no org id"}
	}
	var taken []pushed
	size := 0
	for _, series := range request.Series {
		labels, refused := labelsOf(series.Labels)
		if refused != nil {
			return nil, refused
		}
		if len(series.Samples) == 0 {
			return nil, invalid("empty", "series without profiles")
		}
		for _, sample := range series.Samples {
			one, refused := read(labels, sample)
			if refused != nil {
				return nil, refused
			}
			size += len(one.raw)
			taken = append(taken, *one)
		}
	}
	if len(taken) == 0 {
		return nil, invalid("empty", "no series")
	}
	if !p.allow(tenant, size) {
		return nil, &refusal{connect.CodeResourceExhausted, "rate",
			fmt.Sprintf("limit of %.0f bytes/s exceeded by %d bytes", p.rate, size)}
	}
	return taken, nil
}

func labelsOf(pairs []*typesv1.LabelPair) (map[string]string, *refusal) {
	labels := map[string]string{}
	for _, pair := range pairs {
		if _, has := labels[pair.Name]; has {
			return nil, invalid("labels", "duplicate label %q", pair.Name)
		}
		labels[pair.Name] = pair.Value
	}
	return labels, checkLabels(labels)
}

func checkLabels(labels map[string]string) *refusal {
	if !metricName.MatchString(labels["__name__"]) {
		return invalid("name", "invalid metric name %q", labels["__name__"])
	}
	if len(labels) > labelsMax {
		return invalid("labels", "%d labels", len(labels))
	}
	for name, value := range labels {
		if name == "" || !utf8.ValidString(name) || !utf8.ValidString(value) {
			return invalid("labels", "invalid label %q", name)
		}
		if len(name) > labelNameMaxBytes || len(value) > labelValueMaxBytes {
			return invalid("labels", "label %.40q too long", name)
		}
	}
	return nil
}

func unpack(raw []byte) ([]byte, error) {
	if !bytes.HasPrefix(raw, []byte{0x1f, 0x8b}) {
		return raw, nil
	}
	reader, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		return nil, fmt.Errorf("gzip reset: %w", err)
	}
	return io.ReadAll(io.LimitReader(reader, profileMaxBytes+1))
}

// read takes a profile by the schema of the server itself and by that of pprof.
func read(labels map[string]string, sample *pushv1.RawSample) (*pushed, *refusal) {
	junk := func(err error) *refusal {
		return &refusal{connect.CodeUnknown, "junk", err.Error()}
	}
	if !uuid.MatchString(sample.ID) {
		return nil, invalid("id", "%q is no UUID", sample.ID) // not measured
	}
	raw, err := unpack(sample.RawProfile)
	if err != nil {
		return nil, junk(err)
	}
	if len(raw) > profileMaxBytes {
		return nil, invalid("size", "profile of more than %d bytes", profileMaxBytes)
	}
	var plain googlev1.Profile
	if err := proto.Unmarshal(raw, &plain); err != nil {
		return nil, junk(err)
	}
	if refused := checkSizes(&plain); refused != nil {
		return nil, refused
	}
	found, err := profile.ParseUncompressed(raw)
	if err == nil {
		err = found.CheckValid()
	}
	if err != nil {
		return nil, junk(err)
	}
	return &pushed{labels, sample.ID, raw, found}, checkTypes(found)
}

func checkSizes(plain *googlev1.Profile) *refusal {
	if len(plain.Sample) > samplesMax {
		return invalid("samples", "%d samples", len(plain.Sample))
	}
	for _, sample := range plain.Sample {
		if len(sample.Label) > sampleLabelsMax {
			return invalid("samples", "%d labels of a sample", len(sample.Label))
		}
	}
	if plain.TimeNanos == 0 {
		return nil
	}
	at, now := time.Unix(0, plain.TimeNanos), time.Now()
	if now.Sub(at) > olderMax || at.Sub(now) > newerMax {
		return invalid("time", "profile of %s is not within the ingestion window", at.UTC())
	}
	return nil
}

func checkTypes(found *profile.Profile) *refusal {
	types := found.SampleType
	if found.PeriodType != nil {
		types = append(types[:len(types):len(types)], found.PeriodType)
	}
	for _, one := range types {
		if !metricName.MatchString(one.Type) {
			return invalid("name", "invalid type %q", one.Type)
		}
	}
	return nil
}

// split gives the series that a profile becomes: each text among the labels of a sample is a label of a series; numbers are
// not indexed, and get lost.
func (p *pushed) split() map[string]*profile.Profile {
	parts := map[string]*profile.Profile{}
	for _, sample := range p.profile.Sample {
		labels := map[string]string{"service_name": "unknown_service"}
		for name, value := range p.labels {
			labels[name] = value
		}
		for name, values := range sample.Label {
			if name != "span_id" && name != "trace_id" && name != "profile_id" {
				labels[name] = values[0]
			}
		}
		key := keyOf(labels)
		if parts[key] == nil {
			parts[key] = without(p.profile, p.profile.SampleType)
		}
		parts[key].Sample = append(parts[key].Sample, &profile.Sample{Location: sample.Location, Value: sample.Value})
	}
	return parts
}

// without gives a profile of these types without its samples and comments.
func without(p *profile.Profile, types []*profile.ValueType) *profile.Profile {
	return &profile.Profile{SampleType: types, Mapping: p.Mapping, Location: p.Location, Function: p.Function,
		PeriodType: p.PeriodType, Period: p.Period, TimeNanos: p.TimeNanos, DurationNanos: p.DurationNanos}
}

func keyOf(labels map[string]string) string {
	var words []string
	for name, value := range labels {
		words = append(words, fmt.Sprintf("%s=%q", name, value))
	}
	sort.Strings(words)
	return "{" + strings.Join(words, ",") + "}"
}

// damage counts what the server would cut off or leave out without a word.
func (p *pushed) damage() (truncated, nameless int) {
	for _, sample := range p.profile.Sample {
		if len(sample.Location) > depthMax {
			truncated++
		}
	}
	for _, function := range p.profile.Function {
		if len(function.Name) > textMaxBytes || len(function.Filename) > textMaxBytes {
			truncated++
		}
	}
	for _, location := range p.profile.Location {
		if len(location.Line) == 0 {
			nameless++
		}
	}
	return truncated, nameless
}
