package monitoring
import (_ "github.com/prometheus/prometheus/promql/parser"
 _ "github.com/prometheus/prometheus/model/rulefmt")
