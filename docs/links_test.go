// Package docs tests the Markdown pages: that every relative link in them leads to a file, and to a heading of it, that exists.
package docs

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

var (
	fence = regexp.MustCompile("(?ms)^[ \t]*```.*?^[ \t]*```[ \t]*$")
	code  = regexp.MustCompile("`[^`\n]*`")
	link  = regexp.MustCompile(`\]\(([^()\s]+)\)`)
)

// anchors returns the anchors that GitHub gives to the headings of a page.
func anchors(page string) []string {
	var out []string
	for line := range strings.Lines(fence.ReplaceAllString(page, "")) {
		marks, text, isHeading := strings.Cut(line, " ")
		if !isHeading || marks == "" || strings.Trim(marks, "#") != "" {
			continue
		}
		anchor := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
				return unicode.ToLower(r)
			}
			return -1
		}, strings.TrimSpace(text))
		unique := anchor
		for i := 1; slices.Contains(out, unique); i++ {
			unique = fmt.Sprintf("%s-%d", anchor, i)
		}
		out = append(out, unique)
	}
	return out
}

// broken returns the relative links of a page that lead nowhere. dir is the folder of the page, and read returns the content of a file, or an empty
// string and nil for a folder.
func broken(page, dir string, read func(path string) (string, error)) []string {
	var out []string
	text := code.ReplaceAllString(fence.ReplaceAllString(page, ""), "")
	for _, m := range link.FindAllStringSubmatch(text, -1) {
		if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
			continue
		}
		path, anchor, hasAnchor := strings.Cut(m[1], "#")
		target := page
		if path != "" {
			var err error
			if target, err = read(filepath.Join(dir, filepath.FromSlash(path))); err != nil {
				out = append(out, m[1])
				continue
			}
		}
		if hasAnchor && !slices.Contains(anchors(target), anchor) {
			out = append(out, m[1])
		}
	}
	return out
}

// content returns the content of a file, and an empty string for a folder.
func content(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil || info.IsDir() {
		return "", err
	}
	data, err := os.ReadFile(path)
	return string(data), err
}

// TestLinks checks the relative links and anchors of all pages in docs, of the pages at the repository's root, and of the charts.
func TestLinks(t *testing.T) {
	pages, err := filepath.Glob("../deploy/charts/*/README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range []string{"README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"} {
		pages = append(pages, filepath.Join("..", page))
	}
	if err := filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".md") {
			pages = append(pages, path)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if len(pages) < 50 {
		t.Errorf("%d pages were found, want at least 50", len(pages))
	}
	for _, page := range pages {
		text, err := content(page)
		if err != nil {
			t.Error(err)
			continue
		}
		for _, target := range broken(text, filepath.Dir(page), content) {
			t.Errorf("%s: the link %s leads to no file or heading", page, target)
		}
	}
}

func TestBroken(t *testing.T) {
	pages := map[string]string{filepath.Join("docs", "b.md"): "# The B\n## Twice\n## Twice\n```\n# no heading\n```\n", "top.md": "# `x`: all of it\n"}
	read := func(path string) (string, error) {
		if page, exists := pages[path]; exists {
			return page, nil
		}
		return "", fs.ErrNotExist
	}
	for _, c := range []struct {
		reason, page string
		want         []string
	}{
		{"a page, its headings, and other sites", "[a](b.md) [b](b.md#the-b) [c](https://example.com/z.md#no) [d](mailto:a@example.com)", nil},
		{"a page above, with punctuation in the heading", "[a](../top.md#x-all-of-it)", nil},
		{"its own heading", "# Own\n[a](#own) [b](#none)", []string{"#none"}},
		{"headings of the same text are numbered", "[a](b.md#twice-1) [b](b.md#twice-2)", []string{"b.md#twice-2"}},
		{"no such page", "[a](c.md)", []string{"c.md"}},
		{"a comment in code is no heading", "[a](b.md#no-heading)", []string{"b.md#no-heading"}},
		{"code has no links", "`[a](c.md)`\n```\n[a](c.md)\n```\n", nil},
	} {
		if got := broken(c.page, "docs", read); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.reason, got, c.want)
		}
	}
}
