// SPDX-License-Identifier: BSD-2-Clause
package main

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"sync"

	"github.com/google/pprof/profile"
	pushv1 "github.com/grafana/pyroscope/api/gen/proto/go/push/v1"
)

// counts is what GET /stub/counts answers.
type counts struct {
	Pushes   int            `json:"pushes"`  // requests that could be decoded
	Refused  map[string]int `json:"refused"` // by reason
	Profiles int            `json:"profiles"`
	Series   int            `json:"series"`
	Bytes    int64          `json:"bytes"`     // of bodies, as they came
	RawBytes int64          `json:"raw_bytes"` // of profiles that were taken, unpacked
	// Profiles whose id was there before: they count twice, as with the real server.
	RepeatedIDs int `json:"repeated_ids"`
	// What the real server cuts off (samples, names), or leaves out (locations without a line).
	Truncated int `json:"truncated"`
	Nameless  int `json:"nameless"`
	// {series: {sample type: sum of values}}
	Samples map[string]map[string]int64 `json:"samples"`
}

type kept struct {
	labels  map[string]string // __name__ among them
	profile *profile.Profile
}

type store struct {
	mutex  sync.Mutex
	counts counts
	ids    map[string]bool
	forget bool
	kept   map[string][]kept // by series
	dump   *os.File
}

func newStore(forget bool) *store {
	return &store{
		counts: counts{Refused: map[string]int{}, Samples: map[string]map[string]int64{}},
		ids:    map[string]bool{}, forget: forget, kept: map[string][]kept{},
	}
}

func (s *store) writeDump(request *pushv1.PushRequest, taken []pushed) {
	if s.dump == nil {
		return
	}
	for _, series := range request.Series {
		for _, pair := range series.Labels {
			io.WriteString(s.dump, pair.Name+"="+pair.Value+"\n")
		}
	}
	for _, one := range taken {
		s.dump.Write(one.raw)
	}
}

func (s *store) note(request *pushv1.PushRequest, taken []pushed, refused *refusal) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.counts.Pushes++
	if refused != nil {
		s.counts.Refused[refused.reason]++
		return
	}
	s.writeDump(request, taken)
	for i := range taken {
		s.add(&taken[i])
	}
}

func (s *store) add(one *pushed) {
	s.counts.Profiles++
	s.counts.RawBytes += int64(len(one.raw))
	if s.ids[one.id] {
		s.counts.RepeatedIDs++
	}
	s.ids[one.id] = true
	truncated, nameless := one.damage()
	s.counts.Truncated += truncated
	s.counts.Nameless += nameless
	for key, part := range one.split() {
		sums := s.counts.Samples[key]
		if sums == nil {
			sums = map[string]int64{}
			s.counts.Samples[key] = sums
		}
		for _, sample := range part.Sample {
			for i, value := range sample.Value {
				sums[part.SampleType[i].Type] += value
			}
		}
		if !s.forget {
			s.kept[key] = append(s.kept[key], kept{parseKey(key), part})
		}
	}
}

func (s *store) writeCounts(w http.ResponseWriter, bytes int64) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.counts.Bytes, s.counts.Series = bytes, len(s.counts.Samples)
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(&s.counts)
}
