package main

import (
	"fmt"

	"github.com/acp-io/acp/internal/catalog"
)

// catalogSize is the number of applications, and of resources.
const catalogSize = 10_000

// typed contains the searched texts: whole words, beginnings, numbers, a pasted name, a word with an error, and nothing.
var typed = []string{
	"checkout",
	"hotel pho",
	"orders-cou",
	"98",
	"9871",
	"app",
	"ch",
	"chekout",
	"trnv1:rsc:trip-com:redis:clusters:hotel-photo-5721",
	"kafka",
	"person 7",
	"",
}

// measureSearch reports the time of one search, averaged over typed, and the time to build the index.
func measureSearch() error {
	c := company()
	var x *catalog.Index
	report("catalog_index_10k", fastest(3, func() { x = catalog.NewIndex(c) }).Seconds()*1000, "ms")
	const times = 20
	var failed error
	all := func() {
		for range times {
			for _, text := range typed {
				if _, err := x.Search(catalog.Query{Kind: catalog.KindResource, Text: text, Limit: 50}); err != nil {
					failed = err
				}
			}
		}
	}
	report("catalog_search_10k", float64(fastest(rounds, all).Microseconds())/float64(times*len(typed)), "us")
	return failed
}

func company() *catalog.Catalog {
	words := []string{
		"checkout",
		"orders",
		"billing",
		"search",
		"suggest",
		"session",
		"ledger",
		"profile",
		"price",
		"hotel",
		"flight",
		"train",
		"ticket",
		"review",
		"photo",
		"coupon",
	}
	var out []catalog.Record
	for i := range catalogSize / 20 {
		out = append(out, catalog.Record{Kind: catalog.KindPerson, ID: fmt.Sprintf("person-%d", i), Title: fmt.Sprintf("Person %d", i)})
	}
	for i := range catalogSize {
		a, b := words[i%len(words)], words[i/len(words)%len(words)]
		owners := []catalog.Owner{{Kind: catalog.OwnerPerson, ID: fmt.Sprintf("person-%d", i%(catalogSize/20))}}
		out = append(
			out,
			catalog.Record{
				Kind:        catalog.KindApplication,
				ID:          fmt.Sprintf("app-%d", i),
				Title:       fmt.Sprintf("%s %s (%d)", a, b, i),
				Description: "Serves the " + a + " of the " + b + ".",
				Name:        fmt.Sprintf("trnv1:rsc:trip-com:iam:sa:app/%d", i),
				Owners:      owners,
				Environment: "production",
			},
			catalog.Record{
				Kind:        catalog.KindResource,
				ID:          fmt.Sprintf("%s-%s-%d", a, b, i),
				Title:       fmt.Sprintf("%s %s %d", a, b, i),
				Description: "Keeps the " + a + " of the " + b + ".",
				Name: fmt.Sprintf(
					"trnv1:rsc:trip-com:redis:clusters:%s-%s-%d",
					a,
					b,
					i,
				),
				Owners:      owners,
				Environment: "production",
				Sensitivity: catalog.SensitivityLow,
			},
		)
	}
	return catalog.Build(out)
}
