// SPDX-License-Identifier: BSD-2-Clause

// pyroscope_stub [-listen 127.0.0.1:0] [-dump FILE] [-forget] [-multitenant] [-rate BYTES]
//
// A server with Pyroscope's own API (github.com/grafana/pyroscope/api): takes pushes within the limits that the real server
// was measured to have, with its status codes, and answers queries of what was pushed.  The first line of its output is its
// address.
//
//	GET /stub/counts   what came, as JSON (type counts)
//
// -dump: all bytes that were pushed, and each profile unpacked.  -forget: count, and keep no profile.
package main

import (
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"sync/atomic"

	"connectrpc.com/connect"
	"github.com/grafana/pyroscope/api/gen/proto/go/push/v1/pushv1connect"
	"github.com/grafana/pyroscope/api/gen/proto/go/querier/v1/querierv1connect"
)

// Of a request's body, unpacked.
const bodyMaxBytes = 256 << 20

// countingBody counts the bytes of a request as they came.
type countingBody struct {
	io.ReadCloser
	bytes *atomic.Int64
}

func (b countingBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.bytes.Add(int64(n))
	return n, err
}

func main() {
	listen := flag.String("listen", "127.0.0.1:0", "address")
	dump := flag.String("dump", "", "file for all bytes that are pushed")
	forget := flag.Bool("forget", false, "keep no profile")
	multitenant := flag.Bool("multitenant", false, "X-Scope-OrgID is required")
	rate := flag.Float64("rate", 4e6, "bytes a second, unpacked, that a tenant may push; half of it at once")
	flag.Parse()
	store := newStore(*forget)
	if *dump != "" {
		file, err := os.Create(*dump)
		if err != nil {
			log.Fatal(err)
		}
		store.dump = file
	}
	var bytes atomic.Int64
	limit := connect.WithReadMaxBytes(bodyMaxBytes)
	mux := http.NewServeMux()
	path, pusher := pushv1connect.NewPusherServiceHandler(
		&pusher{store: store, multitenant: *multitenant, rate: *rate, buckets: map[string]*bucket{}}, limit)
	mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
		r.Body = countingBody{r.Body, &bytes}
		pusher.ServeHTTP(w, r)
	})
	mux.Handle(querierv1connect.NewQuerierServiceHandler(&querier{store: store}, limit))
	mux.HandleFunc("/stub/counts", func(w http.ResponseWriter, _ *http.Request) { store.writeCounts(w, bytes.Load()) })
	listener, err := net.Listen("tcp", *listen)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("http://%s\n", listener.Addr())
	log.Fatal(http.Serve(listener, mux))
}
