package federation

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// answers is a transport that returns the first of its answers for each request, and then an empty list. Without a status, an answer is a lost connection.
type answers struct {
	status     []int
	retryAfter string
	delay      time.Duration // before each answer
	requests   int
	unclosed   int
}

var errLost = errors.New("connection refused")

func (a *answers) RoundTrip(req *http.Request) (*http.Response, error) {
	a.requests++
	time.Sleep(a.delay)
	code, body := http.StatusOK, `{"kind":"CiliumClusterwideNetworkPolicyList","apiVersion":"cilium.io/v2","metadata":{"resourceVersion":"7"},"items":[]}`
	if len(a.status) > 0 {
		if code, a.status = a.status[0], a.status[1:]; code == 0 {
			return nil, errLost
		}
		body = fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","message":"injected","code":%d}`, code)
	}
	a.unclosed++
	header := http.Header{"Content-Type": {"application/json"}}
	if a.retryAfter != "" {
		header.Set("Retry-After", a.retryAfter)
	}
	return &http.Response{StatusCode: code, Status: http.StatusText(code), Header: header, Request: req, Body: &closing{strings.NewReader(body), a}}, nil
}

type closing struct {
	io.Reader
	of *answers
}

func (c *closing) Close() error {
	c.of.unclosed--
	return nil
}

// TestReadsAreRepeated checks that a read that the API server answered with an error of its own is repeated, and no other request.
func TestReadsAreRepeated(t *testing.T) {
	for name, c := range map[string]struct {
		method, query, retryAfter string
		status                    []int
		delay                     time.Duration
		want, requests            int
	}{
		"it answers":                             {want: 200, requests: 1},
		"one error of the server":                {status: []int{500}, want: 200, requests: 2},
		"an overloaded server":                   {status: []int{503, 503, 502}, want: 200, requests: 4},
		"a time limit of the server":             {status: []int{504}, want: 504, requests: 1},
		"errors after some time":                 {status: []int{500, 500, 500, 500, 500}, delay: 450 * time.Millisecond, want: 500, requests: 2},
		"an error after a long time":             {status: []int{500}, delay: 59 * time.Second, want: 500, requests: 1},
		"errors in all attempts":                 {status: []int{500, 502, 503, 500, 500, 500}, want: 500, requests: readAttempts},
		"an answer about the request":            {status: []int{401}, want: 401, requests: 1},
		"what the server does not do":            {status: []int{501}, want: 501, requests: 1},
		"no answer":                              {status: []int{0}, requests: 1},
		"no answer after an error of it":         {status: []int{500, 0}, requests: 2},
		"a watch":                                {query: "watch=true", status: []int{500}, want: 500, requests: 1},
		"a write":                                {method: http.MethodPatch, status: []int{500}, want: 500, requests: 1},
		"an error with a time for the next read": {retryAfter: "1", status: []int{503}, want: 503, requests: 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := &answers{status: c.status, retryAfter: c.retryAfter, delay: c.delay}
				req, err := http.NewRequestWithContext(t.Context(), c.method, "https://m1/apis/cilium.io/v2/ciliumclusterwidenetworkpolicies?"+c.query, nil)
				if err != nil {
					t.Fatal(err)
				}
				got := 0
				res, err := repeatReads{server}.RoundTrip(req)
				if err == nil {
					got = res.StatusCode
					res.Body.Close()
				} else if !errors.Is(err, errLost) {
					t.Error(err)
				}
				if got != c.want || server.requests != c.requests || server.unclosed != 0 {
					t.Errorf(
						"status %d after %d requests, want %d after %d; %d answers were not closed",
						got,
						server.requests,
						c.want,
						c.requests,
						server.unclosed,
					)
				}
			})
		})
	}
}

// TestRepetitionsEndWithTheRequest checks that no request is made after the time of the read.
func TestRepetitionsEndWithTheRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &answers{status: []int{500, 500, 500, 500}}
		ctx, cancel := context.WithTimeout(t.Context(), readRetryDelay*3/2)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://m1/", nil)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		res, err := repeatReads{server}.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if res.StatusCode != http.StatusInternalServerError || server.requests != 2 || time.Since(began) != readRetryDelay*3/2 {
			t.Errorf("status %d after %d requests and %s", res.StatusCode, server.requests, time.Since(began))
		}
	})
}

// TestMembersAreReadWithRepetitions checks that the clients of a member repeat reads: a probe does, and so does everything else that is read there.
func TestMembersAreReadWithRepetitions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config, err := RESTConfig(Cluster{Name: "m1", Endpoint: "https://m1"}, "token")
		if err != nil {
			t.Fatal(err)
		}
		server := &answers{status: []int{500, 500}}
		config.Transport, config.TLSClientConfig = server, rest.TLSClientConfig{}
		client, err := dynamic.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		m := &member[Observed]{cluster: Cluster{Name: "m1"}, kind: CiliumPolicy, probing: DefaultProbing, log: logr.Discard(),
			watch: &Watch[Observed]{pages: pagesOf(client.Resource(CiliumPolicy.TargetResource))}}
		if err := m.probe(t.Context()); err != nil || server.requests != 3 {
			t.Errorf("the probe made %d requests: %v", server.requests, err)
		}
	})
}
