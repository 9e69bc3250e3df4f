package clickhouse

import (
	"fmt"
	"testing"
	"time"

	chdriver "github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/audit/audittest"
	"github.com/acp-io/acp/internal/sqlquery"
)

func TestToSQL(t *testing.T) {
	every, after := audittest.EveryFilter(), &audit.Cursor{At: 5, Tie: "7"}
	statements := map[string]audittest.Statement{}
	for name, q := range map[string]interface{ toSQL() sqlquery.Statement }{
		"connections":                connectionsQuery{limit: 101},
		"connections by everything":  connectionsQuery{filter: every, limit: 3},
		"connections, the next page": connectionsQuery{after: after, limit: 3},
		"connections by count":       connectionsQuery{filter: every, order: audit.MostFirst, after: after, limit: 3},
		"connections seen last":      connectionsQuery{order: audit.LastSeenLast, after: after, limit: 3},
		"denied by subject":          deniedQuery{audit.DeniedQuery{By: audit.BySubject, Resource: "value-r", Since: audittest.T0}},
		"edges":                      namesQuery{[]string{"value-id"}},
		"flows by everything":        flowsQuery{filter: every, from: 3, to: 5, skip: 2, limit: 3},
		"flows, coarse":              flowsQuery{filter: audit.Filter{Clusters: []string{"value-c"}}, from: 3, to: 5, limit: 3},
		"losses":                     lossesQuery{audit.LossQuery{Since: audittest.T0, Until: audittest.T0, Clusters: []string{"value-c"}}, after, 3},
		"series by everything":       seriesQuery{SeriesQuery: audit.SeriesQuery{Filter: every, Step: time.Minute}},
		"series of older programs":   seriesQuery{audit.SeriesQuery{Filter: audit.Filter{Since: audittest.T0}, Step: time.Minute}, unsummed},
		"series from minutes":        minutesQuery{audit.SeriesQuery{Filter: every, Step: time.Minute}},
		"series, is it all":          unsummedQuery{every},
		"totals by everything":       totalsQuery{every},
		"watched":                    watchedQuery{audittest.T0, audittest.T0},
	} {
		x := q.toSQL()
		s := audittest.Statement{Text: x.Text}
		for _, a := range x.Args {
			n := a.(chdriver.NamedValue)
			s.Args = append(s.Args, fmt.Sprintf("%s = %v", n.Name, n.Value))
		}
		statements[name] = s
	}
	audittest.BindsValues(t, statements)
	audittest.Golden(t, "testdata/statements.txt", statements)
}

func TestStatementsOfACluster(t *testing.T) {
	one, many := Options{}, Options{Cluster: "fleet", FlowsTTL: 7, RollupsTTL: 90}
	statements := map[string]audittest.Statement{}
	for name, o := range map[string]Options{"one server": one, "a cluster": many} {
		for i, text := range append(append([]string{leasesTable, versionsTable}, migrations[0]...), o.ttls()...) {
			statements[fmt.Sprintf("%s %d", name, i)] = audittest.Statement{Text: o.statement(text)}
		}
	}
	audittest.Golden(t, "testdata/schema.txt", statements)
}
