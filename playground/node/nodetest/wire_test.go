package nodetest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"
)

func (in *installation) moments(ctx context.Context, app, path string) (*moments, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	body, err := in.member.CoreV1().Pods("default").ProxyGet("http", app, "8080", path, map[string]string{"to": in.apps["redis"] + ":6379"}).Stream(ctx)
	if err != nil {
		cancel()
		return nil, fmt.Errorf("ask %s: %w", app, err)
	}
	return &moments{lines: bufio.NewScanner(body), close: func() {
		body.Close()
		cancel()
	}}, nil
}

func (m *moments) next() (moment, error) {
	var out moment
	if !m.lines.Scan() {
		return out, fmt.Errorf("the pod says nothing more: %w", errors.Join(m.lines.Err(), errors.New("end")))
	}
	return out, json.Unmarshal(m.lines.Bytes(), &out)
}

// hold opens a connection and returns when it was used.
func (in *installation) hold(t *testing.T, app string) *moments {
	t.Helper()
	m, err := in.moments(t.Context(), app, "held")
	if err != nil {
		t.Fatal(err)
	}
	if first, err := m.next(); err != nil || first.Event != "open" {
		t.Fatalf("hold a connection: %+v, %v", first, err)
	}
	return m
}

// ended returns when the last request on the connection was answered.
func (m *moments) ended(t *testing.T) time.Time {
	t.Helper()
	defer m.close()
	last, err := m.next()
	if err != nil || last.Event != "ended" {
		t.Fatalf("the connection stays open: %+v, %v", last, err)
	}
	return time.Unix(0, last.UnixNano)
}

// measureWire measures from the last approval to the first connection, and from the revocation to the last answer on an open one.
func (in *installation) measureWire(t *testing.T) {
	repetitions := 20
	if text := os.Getenv("ACP_REPETITIONS"); text != "" {
		var err error
		if repetitions, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	alice, bob, carol := in.browsers.login(t, "alice"), in.browsers.login(t, "bob"), in.browsers.login(t, "carol")
	var opened, closed []time.Duration
	for range repetitions {
		asked := carol.approve(t, alice.request(t, "shop", "orders"))
		first := make(chan moment, 1)
		go func() {
			var at moment
			m, err := in.moments(t.Context(), "shop", "await")
			if err == nil {
				defer m.close()
				at, err = m.next()
			}
			if err != nil {
				at.Error = err.Error()
			}
			first <- at
		}()
		start := time.Now()
		asked = bob.approve(t, asked)
		at := <-first
		if at.Error != "" {
			t.Fatalf("ticket %s opens nothing: %s", asked.ID, at.Error)
		}
		opened = append(opened, time.Unix(0, at.UnixNano).Sub(start))
		eventually(t, wireTimeout, "the ticket is effective", bob.is(asked, "effective"))
		held := in.hold(t, "shop")
		start = time.Now()
		bob.revoke(t, asked)
		closed = append(closed, held.ended(t).Sub(start))
		eventually(t, wireTimeout, "the ticket is revoked", bob.is(asked, "revoked"))
	}
	for name, all := range map[string][]time.Duration{"approve_to_wire": opened, "revoke_to_wire": closed} {
		slices.Sort(all)
		fmt.Printf("bench %s_p50 %d ms\nbench %s_p99 %d ms\n", name, quantile(all, 0.5).Milliseconds(), name, quantile(all, 0.99).Milliseconds())
		t.Logf("%s: %v", name, all)
	}
}

// quantile of sorted times: the smallest one that at least this part of them does not exceed.
func quantile(sorted []time.Duration, part float64) time.Duration {
	return sorted[max(0, int(math.Ceil(part*float64(len(sorted))))-1)]
}
