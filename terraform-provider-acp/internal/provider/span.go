package provider

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
)

// parseSpan parses a positive time such as 90m, 8h, 30d or 12w, in whole seconds.
func parseSpan(s string) (time.Duration, error) {
	wrong := fmt.Errorf("%q is not a time such as 90m, 8h, 30d or 12w", s)
	if s == "" {
		return 0, wrong
	}
	units := map[byte]time.Duration{'d': 24 * time.Hour, 'w': 7 * 24 * time.Hour}
	var d time.Duration
	if unit, ok := units[s[len(s)-1]]; ok {
		n, err := strconv.ParseUint(s[:len(s)-1], 10, 16)
		if err != nil {
			return 0, wrong
		}
		d = time.Duration(n) * unit
	} else {
		var err error
		if d, err = time.ParseDuration(s); err != nil {
			return 0, wrong
		}
	}
	if d <= 0 || d%time.Second != 0 {
		return 0, fmt.Errorf("%q is not a positive number of seconds", s)
	}
	return d, nil
}

// formatSpan returns a text that parseSpan parses.
func formatSpan(d time.Duration) string {
	const day = 24 * time.Hour
	if d%day == 0 {
		return strconv.FormatInt(int64(d/day), 10) + "d"
	}
	return d.String()
}

// sameSpan reports whether two texts are the same time.
func sameSpan(a, b string) bool {
	x, errX := parseSpan(a)
	y, errY := parseSpan(b)
	return a == b || errX == nil && errY == nil && x == y
}

// permanent reports whether an error of a connection stays the same when it is repeated.
func permanent(err error) bool {
	var certificate *tls.CertificateVerificationError
	return errors.As(err, &certificate) || errors.Is(err, context.Canceled)
}

// check is a validator of a text.
type check struct {
	description string
	valid       func(string) error
}

// Description implements validator.Describer.
func (c check) Description(context.Context) string { return c.description }

// MarkdownDescription implements validator.Describer.
func (c check) MarkdownDescription(context.Context) string { return c.description }

// ValidateString implements validator.String.
func (c check) ValidateString(_ context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	if req.ConfigValue.IsNull() || req.ConfigValue.IsUnknown() {
		return
	}
	if err := c.valid(req.ConfigValue.ValueString()); err != nil {
		resp.Diagnostics.AddAttributeError(req.Path, "The value cannot be used", err.Error())
	}
}

// spanBetween accepts a time between two limits.
func spanBetween(least, most time.Duration) validator.String {
	text := fmt.Sprintf("a time from %s to %s", formatSpan(least), formatSpan(most))
	return check{text, func(s string) error {
		d, err := parseSpan(s)
		if err == nil && (d < least || d > most) {
			err = fmt.Errorf("%q is not %s", s, text)
		}
		return err
	}}
}

// oneOf accepts one of some values.
func oneOf(values ...string) validator.String {
	text := "one of " + strings.Join(values, ", ")
	return check{text, func(s string) error {
		if !slices.Contains(values, s) {
			return fmt.Errorf("%q is not %s", s, text)
		}
		return nil
	}}
}

// notBlank accepts a text of at most a number of characters that is not blank.
func notBlank(most int) validator.String {
	text := fmt.Sprintf("a text of 1 to %d characters", most)
	return check{text, func(s string) error {
		if strings.TrimSpace(s) == "" || len([]rune(s)) > most {
			return errors.New("the value must be " + text)
		}
		return nil
	}}
}

// printable removes what controls a terminal from a text that people or other programs wrote.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case strconv.IsPrint(r):
			return r
		}
		return -1
	}, s)
}
