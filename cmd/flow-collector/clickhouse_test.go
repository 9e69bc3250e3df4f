package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/audit/clickhouse"
	"github.com/acp-io/acp/internal/cli"
	"github.com/acp-io/acp/internal/testenv"
)

// TestClickHouseFromEndToEnd runs the program with a current ClickHouse, and reads the result with `kubectl acp flows --store`
// and with the reader that the portal opens.
func TestClickHouseFromEndToEnd(t *testing.T) {
	dsn := testenv.ClickHouse(t)
	const flows = 500
	at := time.Now().Add(-time.Hour).UTC().Truncate(time.Minute)
	var lines bytes.Buffer
	for i := range flows {
		if err := json.NewEncoder(&lines).Encode(exportedFlow(i, at.Add(time.Duration(i)*time.Millisecond))); err != nil {
			t.Fatal(err)
		}
	}
	newest := at.Add((flows - 1) * time.Millisecond)

	// The program ends at the end of its input, after it has stored everything.
	collector := exec.CommandContext(
		t.Context(),
		os.Args[0],
		"--kubeconfig="+emptyHost(t),
		"--store=@"+file(t, dsn+"\n"),
		"--exporter=m1=-",
		"--health-address=127.0.0.1:0",
	)
	collector.Env = append(os.Environ(), beCollector+"=1")
	collector.Stdin = &lines
	if out, err := collector.CombinedOutput(); err != nil {
		t.Fatalf("flow-collector: %v\n%s", err, out)
	}

	var out, errs bytes.Buffer
	if code := cli.Run(t.Context(), []string{"flows", "--store", dsn, "-o", "json"}, cli.Streams{Out: &out, Err: &errs, Now: time.Now}); code != cli.ExitFine {
		t.Fatalf("kubectl acp flows: %d %s", code, errs.String())
	}
	type line struct {
		Cluster, Protocol string
		Port              uint16
		Count             int64
		First, Last       time.Time
	}
	var listed []line
	if err := json.Unmarshal(out.Bytes(), &listed); err != nil {
		t.Fatalf("%v: %s", err, out.String())
	}
	want := []line{{Cluster: "m1", Protocol: "TCP", Port: 6379, Count: flows, First: at, Last: newest}}
	if diff := cmp.Diff(want, listed); diff != "" {
		t.Errorf("kubectl acp flows (-want +got)\n%s%s", diff, out.String())
	}

	o, err := clickhouse.ParseDSN(dsn, os.ReadFile)
	if err != nil {
		t.Fatal(err)
	}
	reader, err := clickhouse.OpenReader(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	last, err := reader.LastFlow(t.Context())
	if diff := cmp.Diff(map[string]time.Time{"m1": newest}, last); err != nil || diff != "" {
		t.Errorf("LastFlow: %v (-want +got)\n%s", err, diff)
	}
	page, err := reader.Flows(t.Context(), audit.FlowQuery{Limit: flows})
	if err != nil || len(page.Items) != flows || page.Next != "" {
		t.Errorf("got %d individual flows, %v; want all %d, the default with ClickHouse", len(page.Items), err, flows)
	}
}
