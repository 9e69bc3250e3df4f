package oncall

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"time"
)

const (
	requestTimeout = 10 * time.Second
	maxBody        = 1 << 20  // bytes of an answer
	maxHeader      = 64 << 10 // bytes of the header of an answer
	maxToken       = 4 << 10  // bytes of a file with a token
)

// newClient returns a client for the APIs. It follows no redirects, because the token goes nowhere else.
func newClient() *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxResponseHeaderBytes, t.MaxIdleConnsPerHost = maxHeader, 2
	return &http.Client{Transport: t, Timeout: requestTimeout, CheckRedirect: func(*http.Request, []*http.Request) error {
		return errors.New("it redirects: give the address that it redirects to, the token goes nowhere else")
	}}
}

// readToken reads a token from its file.
func readToken(name string) (string, error) {
	if name == "" {
		return "", errors.New("give the file that contains the token")
	}
	f, err := os.Open(name) //nolint:gosec // the operator names the file
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }() // only read
	data, err := io.ReadAll(io.LimitReader(f, maxToken+1))
	if err != nil {
		return "", err
	}
	token := string(bytes.TrimSpace(data))
	if token == "" || len(data) > maxToken || bytes.ContainsAny([]byte(token), "\r\n") {
		return "", fmt.Errorf("%s does not contain a token in one line", name)
	}
	return token, nil
}

// get reads a JSON document. An error contains neither the token nor what the other side says.
func get(ctx context.Context, client *http.Client, address *url.URL, header http.Header, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), nil)
	if err != nil {
		return err
	}
	req.Header = header
	res, err := client.Do(req)
	if err != nil {
		var u *url.Error
		if errors.As(err, &u) { // The error's text contains the whole query.
			err = u.Err
		}
		return fmt.Errorf("%s: %w", address.Host, err)
	}
	defer func() { _ = res.Body.Close() }() // read to its end, or not used
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answered %d", address.Host, res.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, maxBody+1))
	switch {
	case err != nil:
		return fmt.Errorf("read the answer of %s: %w", address.Host, err)
	case len(body) > maxBody:
		return fmt.Errorf("the answer of %s has more than %d bytes", address.Host, maxBody)
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("the answer of %s is not the JSON that was expected", address.Host)
	}
	return nil
}
