package bench

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"github.com/acp-io/acp/playground/internal/supervisor"
)

// Costs are the processor time of processes, and the requests that API servers answered, up to an instant.
type Costs struct {
	at       time.Time
	cpu      map[process]time.Duration
	requests map[request]answers
}

// process is a process by its name, in one of its runs.
type process struct {
	name string
	pid  int
}

// request is what was requested of the API server of a cluster.
type request struct{ cluster, verb, resource string }

// answers are the number of answers to a request, and their total time.
type answers struct {
	n    float64
	took time.Duration
}

// CostsOf returns the costs of processes, by name, until now, and of the API servers of clusters. The configurations are those of
// administrators.
func CostsOf(ctx context.Context, processes map[string]int, servers map[string]*rest.Config) (Costs, error) {
	c := Costs{at: time.Now(), cpu: map[process]time.Duration{}, requests: map[request]answers{}}
	for name, pid := range processes {
		c.cpu[process{name, pid}] = supervisor.CPU(pid)
	}
	for cluster, config := range servers {
		if err := c.addRequests(ctx, cluster, config); err != nil {
			return Costs{}, fmt.Errorf("read the metrics of the API server of %s: %w", cluster, err)
		}
	}
	return c, nil
}

func (c *Costs) addRequests(ctx context.Context, cluster string, config *rest.Config) error {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(config.Host, "/")+"/metrics", nil)
	if err != nil {
		return err
	}
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("the answer is %s", res.Status)
	}
	return c.read(cluster, res.Body)
}

// labelPattern matches a label of a metric and its value.
var labelPattern = regexp.MustCompile(`(\w+)="([^"]*)"`)

// read adds the requests in the metrics of an API server, without watches, whose times are those of connections.
func (c *Costs) read(cluster string, metrics io.Reader) error {
	lines := bufio.NewScanner(metrics)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		sum := strings.HasPrefix(line, "apiserver_request_duration_seconds_sum{")
		if !sum && !strings.HasPrefix(line, "apiserver_request_duration_seconds_count{") {
			continue
		}
		labels, text, found := strings.Cut(line, "} ")
		if !found {
			return fmt.Errorf("the line %q has no value", line)
		}
		value, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return fmt.Errorf("read the value of %q: %w", line, err)
		}
		l := map[string]string{}
		for _, m := range labelPattern.FindAllStringSubmatch(labels, -1) {
			l[m[1]] = m[2]
		}
		if l["verb"] == "WATCH" || l["verb"] == "WATCHLIST" || l["resource"] == "" {
			continue
		}
		r := request{cluster: cluster, verb: l["verb"], resource: l["resource"]}
		if sub := l["subresource"]; sub != "" {
			r.resource += "/" + sub
		}
		a := c.requests[r]
		if sum {
			a.took += time.Duration(value * float64(time.Second))
		} else {
			a.n += value
		}
		c.requests[r] = a
	}
	return lines.Err()
}

// leastShare is the number of requests for each object below which a kind of requests is not printed.
const leastShare = 0.005

// Print prints what n objects cost since earlier costs: the requests for each object with the mean time until the answer, and the processor
// time of each process for each object with its share of all of it.
func (c Costs) Print(w io.Writer, what string, before Costs, n int) {
	per := func(d time.Duration) float64 { return Millis(d) / float64(n) }
	requests := map[request]answers{}
	for r, a := range c.requests {
		b := before.requests[r]
		if a = (answers{a.n - b.n, a.took - b.took}); a.n/float64(n) >= leastShare {
			requests[r] = a
		}
	}
	for _, r := range slices.SortedFunc(maps.Keys(requests), func(a, b request) int {
		return cmp.Or(cmp.Compare(a.cluster, b.cluster), cmp.Compare(requests[b].n, requests[a].n), cmp.Compare(a.resource+a.verb, b.resource+b.verb))
	}) {
		a := requests[r]
		fmt.Fprintf(w, "cost of %s: %s: %s %s: %.3g for each, answered in %.1f ms\n", what, r.cluster, r.verb, r.resource, a.n/float64(n), Millis(a.took)/a.n)
	}
	used, all := map[string]time.Duration{}, time.Duration(0)
	for p, d := range c.cpu {
		d -= before.cpu[p]
		used[p.name] += d
		all += d
	}
	for _, name := range slices.SortedFunc(maps.Keys(used), func(a, b string) int {
		return cmp.Or(cmp.Compare(used[b], used[a]), cmp.Compare(a, b))
	}) {
		if share := 100 * float64(used[name]) / float64(max(all, 1)); share >= 1 {
			fmt.Fprintf(w, "cost of %s: processor time of %s: %.2f ms for each, %.0f %%\n", what, name, per(used[name]), share)
		}
	}
	fmt.Fprintf(w, "cost of %s: processor time of all: %.2f ms for each, %.2f processors of the machine\n", what, per(all),
		all.Seconds()/c.at.Sub(before.at).Seconds())
}
