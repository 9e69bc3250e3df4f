package ticketapi

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/acp-io/acp/internal/accesspackage"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/openapi"
	"github.com/acp-io/acp/internal/portal/views"
)

// packageFacts adds the facts about a version of an access package: its resources beside those of the version before it, and its holders.
func (fr *factsReader) packageFacts(ctx context.Context, f *factItem) error {
	after, err := accesspackage.ParseSpec(f.Change.After)
	if err != nil {
		return err
	}
	var before accesspackage.Spec
	if len(f.Change.Before) > 0 {
		if before, err = accesspackage.ParseSpec(f.Change.Before); err != nil {
			return err
		}
	}
	out := &openapi.PackageFacts{Resources: packagedResources(fr.catalog, before, after), ToHolders: len(after.Holders) > 0}
	f.out.Package = out
	if !f.rights.change {
		f.hide(openapi.ItemFactsHiddenHolders)
		return nil
	}
	var holders []openapi.CatalogRef
	switch {
	case out.ToHolders: // as they were when the version was requested, which is what the approvers decide
		for name := range after.Holders {
			holders = append(holders, views.Ref(fr.catalog, name))
		}
		out.Changes = new(holderFacts(fr.catalog, after.Holders))
	case f.Change.Verb == approval.VerbCreate:
	default:
		held, complete, err := fr.api.Tickets.PackageHolders(core.RequestContext(ctx), f.Change.Name)
		if err != nil {
			return err
		}
		for name := range held {
			holders = append(holders, views.Ref(fr.catalog, name))
		}
		if !complete {
			out.MoreHolders = new(true)
		}
	}
	out.Holders = new(nameFacts(holders))
	return nil
}

// changeRank orders the resources of a package: those that differ from the version before it are first.
var changeRank = map[openapi.PackagedResourceChange]int{
	openapi.PackagedResourceChangeAdded:   3,
	openapi.PackagedResourceChangeChanged: 2,
	openapi.PackagedResourceChangeRemoved: 1,
}

// packagedResources returns the resources of a version, and those that only the version before it has.
func packagedResources(c *catalog.Catalog, before, after accesspackage.Spec) openapi.PackagedResources {
	out := openapi.PackagedResources{Total: len(after.Resources), Items: []openapi.PackagedResource{}}
	for name, r := range after.Resources {
		x := openapi.PackagedResource{Resource: views.Ref(c, name), Sensitivity: sensitivityOf(c, name), Change: openapi.PackagedResourceChangeKept,
			Actions: append([]string{}, r.Actions...)}
		countSensitivity(&out.Sensitivities, x.Sensitivity)
		switch was, had := before.Resources[name]; {
		case !had:
			x.Change = openapi.PackagedResourceChangeAdded
		case !slices.Equal(was.Actions, r.Actions):
			x.Change, x.Before = openapi.PackagedResourceChangeChanged, new(slices.Clone(was.Actions))
		}
		out.Items = append(out.Items, x)
	}
	for name, r := range before.Resources {
		if _, kept := after.Resources[name]; !kept {
			out.Items = append(out.Items, openapi.PackagedResource{Resource: views.Ref(c, name), Sensitivity: sensitivityOf(c, name),
				Change: openapi.PackagedResourceChangeRemoved, Actions: append([]string{}, r.Actions...)})
		}
	}
	slices.SortFunc(out.Items, func(x, y openapi.PackagedResource) int {
		return cmp.Or(changeRank[y.Change]-changeRank[x.Change], sensitivityRank[core.Value(y.Sensitivity)]-sensitivityRank[core.Value(x.Sensitivity)],
			byTitle(x.Resource, y.Resource))
	})
	out.Items = out.Items[:min(len(out.Items), accesspackage.MaxResources)]
	return out
}

// holderFacts returns what a version changes for the first holders, those with the most changes first.
func holderFacts(c *catalog.Catalog, holders map[string]accesspackage.HolderChange) []openapi.HolderFacts {
	resources := func(of map[string][]string) openapi.NameFacts {
		refs := make([]openapi.CatalogRef, 0, len(of))
		for name := range maps.Keys(of) {
			refs = append(refs, views.Ref(c, name))
		}
		return nameFacts(refs)
	}
	out := make([]openapi.HolderFacts, 0, len(holders))
	for name, h := range holders {
		out = append(out, openapi.HolderFacts{Application: views.Ref(c, name), Gets: resources(h.Gets), Loses: resources(h.Loses), Renews: resources(h.Renews)})
	}
	changes := func(h openapi.HolderFacts) int { return h.Gets.Total + h.Loses.Total }
	slices.SortFunc(out, func(x, y openapi.HolderFacts) int {
		return cmp.Or(cmp.Compare(changes(y), changes(x)), byTitle(x.Application, y.Application))
	})
	return slices.Clone(out[:min(len(out), factNames)])
}
