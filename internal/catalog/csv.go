package catalog

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/acp-io/acp/internal/message"
)

// csvColumns are the columns of each kind. Their names are compared case-insensitively.
var csvColumns = map[Kind]struct {
	file               string
	required, optional []string
}{
	KindApplication: {"applications.csv", []string{"id", "name", "owners"}, []string{"title", "description", "environment"}},
	KindResource:    {"resources.csv", []string{"id", "name", "owners", "sensitivity"}, []string{"title", "description", "environment"}},
	KindGroup:       {"groups.csv", []string{"id"}, []string{"title", "description", "lead", "parent", "members"}},
	KindPerson:      {"people.csv", []string{"id"}, []string{"title", "email", "jobTitle", "leader", "groups"}},
}

var csvFields = map[string]func(*Record, string) error{
	"id":          func(r *Record, v string) error { r.ID = v; return nil },
	"name":        func(r *Record, v string) error { r.Name = v; return nil },
	"title":       func(r *Record, v string) error { r.Title = v; return nil },
	"description": func(r *Record, v string) error { r.Description = v; return nil },
	"environment": func(r *Record, v string) error { r.Environment = v; return nil },
	"sensitivity": func(r *Record, v string) error {
		if v == "" {
			return message.CatalogSensitivityEmpty().Err()
		}
		r.Sensitivity = Sensitivity(strings.ToLower(v))
		return nil
	},
	"owners": func(r *Record, v string) error {
		for _, ref := range list(v) {
			o, err := parseOwner(ref)
			if err != nil {
				return err
			}
			r.Owners = append(r.Owners, o)
		}
		return nil
	},
	"email":    func(r *Record, v string) error { r.Email = v; return nil },
	"jobTitle": func(r *Record, v string) error { r.JobTitle = v; return nil },
	"leader":   func(r *Record, v string) error { r.Leader = refID(v); return nil },
	"lead":     func(r *Record, v string) error { r.Lead = refID(v); return nil },
	"parent":   func(r *Record, v string) error { r.Parent = refID(v); return nil },
	"groups":   func(r *Record, v string) error { r.Groups = refIDs(list(v)); return nil },
	"members":  func(r *Record, v string) error { r.Members = refIDs(list(v)); return nil },
}

// list returns the values of one field.
func list(v string) []string {
	return slices.DeleteFunc(strings.Split(v, ";"), func(x string) bool { return strings.TrimSpace(x) == "" })
}

// csvKind returns the kind of the entities in a CSV file, which follows from the file's name.
func csvKind(name string) (Kind, bool) {
	for kind, c := range csvColumns {
		if path.Base(name) == c.file {
			return kind, true
		}
	}
	return "", false
}

// AddCSV adds the entities of a CSV file with a header line. Lists (owners, groups, members) are separated by ";".
// Unknown columns are refused, because a mistyped column would be ignored silently.
func (r *SourceContent) AddCSV(kind Kind, name string, data []byte) {
	in := csv.NewReader(bytes.NewReader(bytes.TrimPrefix(data, []byte("\ufeff"))))
	in.ReuseRecord = true
	header, err := in.Read()
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = message.CatalogCsvEmpty().Err()
		}
		r.csvProblem(name, 0, 0, Ref{}, err)
		return
	}
	columns, ok := r.csvHeader(kind, name, in, header)
	if !ok {
		return
	}
	for {
		row, err := in.Read()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			r.csvProblem(name, 0, 0, Ref{}, err)
			if !errors.Is(err, csv.ErrFieldCount) { // The reader cannot find the next line.
				return
			}
			continue
		}
		r.csvRow(kind, name, in, columns, row)
		if len(r.Records) > MaxRecords {
			return // The caller refuses a reading with too many records.
		}
	}
}

func (r *SourceContent) csvHeader(kind Kind, name string, in *csv.Reader, header []string) ([]string, bool) {
	known := csvColumns[kind]
	all := slices.Concat(known.required, known.optional)
	columns := make([]string, len(header))
	before := len(r.Problems)
	for i, h := range header {
		line, column := in.FieldPos(i)
		at := slices.IndexFunc(all, func(c string) bool { return strings.EqualFold(c, strings.TrimSpace(h)) })
		if at < 0 {
			r.csvProblem(name, line, column, Ref{}, message.CatalogCsvColumnUnknown(h, all).Err())
			continue
		}
		if columns[i] = all[at]; slices.Contains(columns[:i], all[at]) {
			r.csvProblem(name, line, column, Ref{}, message.CatalogCsvColumnTwice(h).Err())
		}
	}
	for _, c := range known.required {
		if !slices.Contains(columns, c) {
			r.csvProblem(name, 1, 1, Ref{}, message.CatalogCsvColumnMissing(c).Err())
		}
	}
	return columns, len(r.Problems) == before
}

func (r *SourceContent) csvRow(kind Kind, name string, in *csv.Reader, columns, row []string) {
	line, _ := in.FieldPos(0)
	rec := Record{Kind: kind, Where: fmt.Sprintf("%s, line %d", name, line)}
	refused := func(field string, err error) {
		column := 1
		if i := slices.Index(columns, field); i >= 0 {
			line, column = in.FieldPos(i)
		}
		r.csvProblem(name, line, column, rec.Ref(), err)
	}
	var bad func()
	for i, c := range columns {
		if err := csvFields[c](&rec, strings.Clone(strings.TrimSpace(row[i]))); err != nil && bad == nil {
			bad = func() { refused(c, err) } // The problem is added when the id is known, so that it names the entity.
		}
	}
	if bad != nil {
		bad()
		return
	}
	n, err := rec.Normalize()
	var field *FieldError
	if errors.As(err, &field) {
		refused(field.Field, err)
		return
	}
	r.Records = append(r.Records, n)
}

func (r *SourceContent) csvProblem(name string, line, column int, ref Ref, err error) {
	where := name
	var parse *csv.ParseError
	if errors.As(err, &parse) {
		line, column, err = parse.Line, parse.Column, parse.Err
	}
	if line > 0 {
		where = fmt.Sprintf("%s, line %d, column %d", name, line, max(column, 1))
	}
	r.Problems = append(r.Problems, problemOf(where, ref, message.Of(err)))
}
