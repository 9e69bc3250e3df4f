package clickhouse

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	driver "github.com/ClickHouse/clickhouse-go/v2"
)

// Options hold the address of a flow store and settings for its tables.
type Options struct {
	driver   *driver.Options
	redacted string
	// Cluster is the name of the cluster on which tables are created and replicated; empty for a single server.
	Cluster string
	// FlowsTTL and RollupsTTL are the numbers of days after which the server itself removes what Prune did not; 0 means never.
	FlowsTTL, RollupsTTL int
	// claimWait is how long a new lease waits for concurrent claims.
	claimWait time.Duration
}

const defaultClaimWait = time.Second

// clusterName matches names that can stand unquoted in a statement, where no bound value is possible.
var clusterName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]{0,127}$`)

// ParseDSN parses clickhouse://USER:PASSWORD@HOST:PORT[,HOST:PORT]/DATABASE?..., or the same with http or https. It handles the
// parameters password_file, cluster, flows_ttl_days and rollups_ttl_days itself; the others are the driver's: secure,
// skip_verify, dial_timeout, compress. The file of the password is read with readFile, and again for each connection. No error
// contains the password.
func ParseDSN(dsn string, readFile func(name string) ([]byte, error)) (Options, error) {
	o := Options{claimWait: defaultClaimWait}
	u, err := url.Parse(dsn)
	if err != nil { // the text of the error contains the password
		return o, errors.New(
			"the address of the flow store cannot be read: give it as clickhouse://USER:PASSWORD@HOST:PORT/DATABASE, with special characters of " +
				"the password percent-encoded",
		)
	}
	switch u.Scheme {
	case "clickhouse", "http", "https":
	default:
		return o, fmt.Errorf("the address of the flow store begins with clickhouse, http or https, not %q", u.Scheme)
	}
	if u.Host == "" || strings.Trim(u.Path, "/") == "" {
		return o, errors.New("the address of the flow store needs a host and a database: clickhouse://USER:PASSWORD@HOST:PORT/DATABASE")
	}
	q := u.Query()
	own := func(name string) string {
		v := q.Get(name)
		q.Del(name)
		return v
	}
	if o.Cluster = own("cluster"); o.Cluster != "" && !clusterName.MatchString(o.Cluster) {
		return o, fmt.Errorf("cluster=%q is not a name of a cluster", o.Cluster)
	}
	for name, to := range map[string]*int{"flows_ttl_days": &o.FlowsTTL, "rollups_ttl_days": &o.RollupsTTL} {
		if v := own(name); v != "" {
			if *to, err = strconv.Atoi(v); err != nil || *to < 1 {
				return o, fmt.Errorf("%s=%q is not a number of days", name, v)
			}
		}
	}
	if u.Scheme == "https" && q.Get("secure") == "" {
		q.Set("secure", "true")
	}
	file := own("password_file")
	u.RawQuery = q.Encode()
	if o.driver, err = driver.ParseDSN(u.String()); err != nil {
		return o, fmt.Errorf("the address of the flow store: %s", strings.ReplaceAll(err.Error(), u.String(), u.Redacted()))
	}
	if file != "" {
		read := func() (string, error) {
			b, err := readFile(file)
			return strings.TrimRight(string(b), "\r\n"), err
		}
		if o.driver.Auth.Password, err = read(); err != nil {
			return o, fmt.Errorf("password_file: %w", err)
		}
		o.FollowPassword(read)
	}
	if o.driver.Compression == nil {
		o.driver.Compression = &driver.Compression{Method: driver.CompressionLZ4}
	}
	o.redacted = (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
	return o, nil
}

// Password returns the password of the address, or of its password file.
func (o Options) Password() string { return o.driver.Auth.Password }

// SameAccount reports whether both have the same user, server and database.
func (o Options) SameAccount(p Options) bool {
	return o.redacted == p.redacted && o.driver.Auth.Username == p.driver.Auth.Username
}

// Redacted returns the address without user and password, for logs.
func (o Options) Redacted() string { return o.redacted }
