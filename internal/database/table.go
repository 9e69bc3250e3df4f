package database

import (
	"reflect"
	"slices"
	"strconv"
	"strings"

	"gorm.io/gorm"
)

// Table returns rows, at least one, as a table expression that a statement can insert, join or search, with its values.
// For PostgreSQL the values are one array per column, so that the statement is the same for any number of rows, and is
// parsed and planned once. A column has integers, strings or booleans; a string may be a pointer, nil for NULL.
func Table(tx *gorm.DB, rows [][]any) (table string, args []any) {
	width := len(rows[0])
	if tx.Name() != postgresName {
		row := "(" + Placeholders(width) + ")"
		return "VALUES " + row + strings.Repeat(", "+row, len(rows)-1), slices.Concat(rows...)
	}
	names, arrays := make([]string, width), make([]string, width)
	for i := range width {
		array, column := arrayOf(rows, i)
		names[i], arrays[i], args = "c"+strconv.Itoa(i), "CAST(? AS "+array+")", append(args, column)
	}
	all := strings.Join(names, ", ")
	return "SELECT " + all + " FROM unnest(" + strings.Join(arrays, ", ") + ") WITH ORDINALITY AS u (" + all + ", nth) ORDER BY nth", args
}

// arrayOf returns the SQL array type of a column and its values.
func arrayOf(rows [][]any, i int) (string, any) {
	switch reflect.TypeOf(rows[0][i]).Kind() {
	case reflect.Int, reflect.Int64:
		return "BIGINT[]", columnOf(rows, i, reflect.Value.Int)
	case reflect.Bool:
		return "BOOLEAN[]", columnOf(rows, i, reflect.Value.Bool)
	case reflect.Pointer:
		return "TEXT[]", columnOf(rows, i, func(v reflect.Value) *string { return v.Interface().(*string) })
	default:
		return "TEXT[]", columnOf(rows, i, reflect.Value.String)
	}
}

func columnOf[T any](rows [][]any, i int, value func(reflect.Value) T) []T {
	out := make([]T, len(rows))
	for n, row := range rows {
		out[n] = value(reflect.ValueOf(row[i]))
	}
	return out
}
