package provider

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/hashicorp/go-retryablehttp"
)

const (
	defaultRetries        = 4
	mostRetries           = 10
	defaultRequestTimeout = 30 * time.Second
	maxRequestTimeout     = 10 * time.Minute
	minRetryWait          = time.Second
	// maxRetryWait bounds the time between two attempts, also if Retry-After is longer: a portal cannot hold Terraform for longer.
	maxRetryWait = time.Minute
	// maxCAFile is the maximum size of the file of certificate authorities in bytes.
	maxCAFile = 4 << 20
)

// newTransport returns a transport that repeats calls. Each attempt has a time limit.
func newTransport(caFile string, timeout time.Duration, retries int) (http.RoundTripper, error) {
	attempt := http.DefaultTransport.(*http.Transport).Clone()
	attempt.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	if caFile != "" {
		info, err := os.Stat(caFile)
		if err != nil {
			return nil, fmt.Errorf("read the certificate authorities: %w", err)
		}
		if !info.Mode().IsRegular() || info.Size() > maxCAFile {
			return nil, fmt.Errorf("%s is not a file of at most %d bytes", caFile, maxCAFile)
		}
		pem, err := os.ReadFile(caFile)
		if err != nil {
			return nil, fmt.Errorf("read the certificate authorities: %w", err)
		}
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s contains no certificate in PEM", caFile)
		}
		attempt.TLSClientConfig.RootCAs = roots
	}
	client := retryablehttp.NewClient()
	client.Logger = nil // it would log the addresses of calls
	client.HTTPClient = &http.Client{
		Transport: attempt,
		Timeout:   timeout,
		// A redirect could send the token to another host.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	client.RetryMax, client.RetryWaitMin, client.RetryWaitMax = retries, minRetryWait, maxRetryWait
	client.ErrorHandler = retryablehttp.PassthroughErrorHandler // the last answer is a problem with a text
	client.Backoff, client.CheckRetry = backoff, checkRetry
	return &repeater{retryablehttp.RoundTripper{Client: client}}, nil
}

// repeatableKey is the key of the context of calls that can be repeated with the same effect.
type repeatableKey struct{}

// repeater is a transport that repeats calls which can safely be repeated.
type repeater struct{ retrying retryablehttp.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (r *repeater) RoundTrip(req *http.Request) (*http.Response, error) {
	repeatable := req.Method == http.MethodGet || req.Method == http.MethodPut || req.Method == http.MethodDelete || req.Header.Get("Idempotency-Key") != ""
	return r.retrying.RoundTrip(req.WithContext(context.WithValue(req.Context(), repeatableKey{}, repeatable)))
}

// checkRetry implements retryablehttp.CheckRetry.
func checkRetry(ctx context.Context, resp *http.Response, err error) (bool, error) {
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	repeatable, _ := ctx.Value(repeatableKey{}).(bool)
	return retries(repeatable, resp, err), nil
}

// retries decides whether an attempt is repeated. After 429 and 503 the portal has changed nothing. Everything else is repeated only if the
// call can be repeated with the same effect.
func retries(repeatable bool, resp *http.Response, err error) bool {
	if err != nil {
		return repeatable && !permanent(err)
	}
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return true
	case http.StatusInternalServerError, http.StatusBadGateway, http.StatusGatewayTimeout:
		return repeatable
	}
	return false
}

// backoff returns the time before the next attempt: that of Retry-After, or a growing one, within the limits.
func backoff(least, most time.Duration, attempt int, resp *http.Response) time.Duration {
	if resp != nil {
		if seconds, err := strconv.ParseUint(resp.Header.Get("Retry-After"), 10, 31); err == nil {
			return min(max(time.Duration(seconds)*time.Second, least), most)
		}
	}
	return min(least<<min(attempt, 16), most)
}
