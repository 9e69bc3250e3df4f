// Package backstage reads entities from the catalog API of a Backstage installation. It owns the HTTP part; package
// catalog interprets the entities.
package backstage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/loopback"
)

const (
	pageSize = 500
	// maxPage is the largest size of a response in bytes; 500 entities with the fields below have about 500 KiB.
	maxPage = 32 << 20
	timeout = 30 * time.Second // for one page
)

// fields keeps the responses small; https://backstage.io/docs/features/software-catalog/software-catalog-api.
const fields = "kind,metadata.name,metadata.namespace,metadata.title,metadata.description,metadata.annotations," +
	"spec.owner,spec.parent,spec.members,spec.memberOf,spec.profile"

// Config configures a source.
type Config struct {
	// Name is the name of the source.
	Name string
	// URL is the address of the backend, for example https://backstage.example.com; http only for this machine.
	URL string
	// TokenFile contains the bearer token. It is read for every sync, so that the token can be rotated. Empty means no
	// token.
	TokenFile string
	// Every is the interval between two readings.
	Every time.Duration
}

// Source implements catalog.Source.
type Source struct {
	c    Config
	base *url.URL
	http *http.Client
}

// New checks the configuration. It opens no connection.
func New(c Config) (*Source, error) {
	u, err := url.Parse(c.URL)
	if err != nil { // The error's text contains the whole URL.
		return nil, fmt.Errorf("backstage source %s: its URL cannot be read: use https://HOST", c.Name)
	}
	if u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Scheme != "https" && (u.Scheme != "http" || !loopback.Is(u.Hostname())) {
		return nil, fmt.Errorf(
			"backstage source %s: URL %q: use https://HOST, without user and query; the token must not travel in the clear",
			c.Name,
			u.Redacted(),
		)
	}
	return &Source{c: c, base: u, http: &http.Client{Timeout: timeout, CheckRedirect: func(*http.Request, []*http.Request) error {
		return errors.New("it redirects: give the address that it redirects to, the token goes nowhere else")
	}}}, nil
}

// Every implements catalog.Periodic.
func (s *Source) Every() time.Duration { return s.c.Every }

// Name implements catalog.Source.
func (s *Source) Name() string { return s.c.Name }

// Read implements catalog.Source. It reads all pages or returns an error, because with a part the remaining entities
// would look as if they were gone.
func (s *Source) Read(ctx context.Context) (catalog.SourceContent, error) {
	token, err := s.token()
	if err != nil {
		return catalog.SourceContent{}, err
	}
	var r catalog.SourceContent
	query := url.Values{"limit": {fmt.Sprint(pageSize)}, "fields": {fields}}
	for _, k := range catalog.BackstageKinds() {
		query.Add("filter", "kind="+strings.ToLower(k))
	}
	seen, count := map[string]bool{}, 0
	for {
		p, err := s.page(ctx, query, token)
		if err != nil {
			return catalog.SourceContent{}, fmt.Errorf("read the catalog of %s: %w", s.base.Redacted(), err)
		}
		for _, e := range p.Items {
			count++
			r.AddJSON(fmt.Sprintf("%s, entity %d", s.c.Name, count), e)
		}
		if count > catalog.MaxRecords {
			return catalog.SourceContent{}, fmt.Errorf("read the catalog of %s: it has more than %d entities", s.base.Redacted(), catalog.MaxRecords)
		}
		next := p.PageInfo.NextCursor
		if next == "" {
			if count < p.TotalItems {
				return catalog.SourceContent{}, fmt.Errorf("read the catalog of %s: it gave %d of its %d entities", s.base.Redacted(), count, p.TotalItems)
			}
			break
		}
		if seen[next] || len(p.Items) == 0 {
			return catalog.SourceContent{}, fmt.Errorf("read the catalog of %s: its pages do not end", s.base.Redacted())
		}
		seen[next] = true
		query = url.Values{"limit": {fmt.Sprint(pageSize)}, "fields": {fields}, "cursor": {next}}
	}
	r.Unique()
	if len(r.Records)+len(r.Problems) == 0 {
		return catalog.SourceContent{}, fmt.Errorf("read the catalog of %s: %w: may the token read them?", s.base.Redacted(), catalog.ErrEmpty)
	}
	return r, nil
}

type page struct {
	Items      []json.RawMessage `json:"items"`
	TotalItems int               `json:"totalItems"`
	PageInfo   struct {
		NextCursor string `json:"nextCursor"`
	} `json:"pageInfo"`
}

func (s *Source) page(ctx context.Context, query url.Values, token string) (p page, err error) {
	u := s.base.JoinPath("api/catalog/entities/by-query")
	u.RawQuery = query.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return p, err
	}
	req.Header.Set("Accept", "application/json")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := s.http.Do(req)
	if err != nil {
		var u *url.Error
		if errors.As(err, &u) { // The error's text contains the whole query.
			err = u.Err
		}
		return p, err
	}
	defer func() { _ = res.Body.Close() }() // The body was only read.
	switch res.StatusCode {
	case http.StatusOK:
	case http.StatusUnauthorized, http.StatusForbidden:
		return p, fmt.Errorf("it answered %d: check the token in %q", res.StatusCode, s.c.TokenFile)
	default:
		return p, fmt.Errorf("it answered %d", res.StatusCode)
	}
	data, err := io.ReadAll(io.LimitReader(res.Body, maxPage+1))
	if err != nil {
		return p, err
	}
	if len(data) > maxPage {
		return p, fmt.Errorf("a page has more than %d MiB", maxPage>>20)
	}
	if err := json.Unmarshal(data, &p); err != nil {
		return p, fmt.Errorf("a page is not what the catalog API of Backstage answers: %w", err)
	}
	return p, nil
}

func (s *Source) token() (string, error) {
	if s.c.TokenFile == "" {
		return "", nil
	}
	data, err := os.ReadFile(s.c.TokenFile)
	if err != nil {
		return "", fmt.Errorf("read the token of backstage source %s: %w", s.c.Name, err)
	}
	token := strings.TrimSpace(string(data))
	if token == "" || strings.ContainsAny(token, " \r\n\t") {
		return "", fmt.Errorf("the token of backstage source %s in %s is not one word", s.c.Name, s.c.TokenFile)
	}
	return token, nil
}
