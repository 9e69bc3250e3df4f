package scim

import (
	"cmp"
	"net/http"
	"strings"

	scimerrors "github.com/elimity-com/scim/errors"
	"github.com/elimity-com/scim/schema"

	"github.com/acp-io/acp/internal/catalog"
)

// enterprise is the schema extension that has the manager of a user.
var enterprise = schema.ExtensionEnterpriseUser().ID

var (
	userKind  = kind{catalog.KindPerson, userAttributes, userRecord}
	groupKind = kind{catalog.KindGroup, groupAttributes, groupRecord}
)

func userAttributes(h *handler, x catalog.Stored) attributes {
	out := attributes{
		"userName": x.ID, "displayName": x.Title, "name": map[string]any{"formatted": x.Title}, "active": x.Gone.IsZero(),
	}
	if x.JobTitle != "" {
		out["title"] = x.JobTitle
	}
	if x.Email != "" {
		out["emails"] = []any{map[string]any{"value": x.Email, "type": "work", "primary": true}}
	}
	if x.Leader != "" {
		out[enterprise] = map[string]any{"manager": map[string]any{"value": x.Leader, "$ref": h.BaseURL + usersEndpoint + "/" + x.Leader}}
	}
	return out
}

func userRecord(h *handler, id string, in attributes) (catalog.Record, error) {
	name := text(in, "userName")
	if id != "" && name != id {
		return catalog.Record{}, scimerrors.ScimError{Status: http.StatusBadRequest, ScimType: scimerrors.ScimTypeMutability,
			Detail: "The userName is the id of the person and cannot be changed: create a user with the other name, and delete this one."}
	}
	if id == "" && h.takenInOtherCase(name) {
		return catalog.Record{}, scimerrors.ScimErrorUniqueness
	}
	full, _ := get(in, "name").(map[string]any)
	rec := catalog.Record{
		Kind: catalog.KindPerson, ID: name, JobTitle: text(in, "title"), Email: email(in),
		Title: cmp.Or(text(in, "displayName"), text(full, "formatted"), strings.TrimSpace(text(full, "givenName")+" "+text(full, "familyName"))),
	}
	if active, given := get(in, "active").(bool); given {
		rec.Deactivated = !active
	}
	extension, _ := get(in, enterprise).(map[string]any)
	manager, _ := get(extension, "manager").(map[string]any)
	rec.Leader = text(manager, "value")
	return rec, nil
}

// takenInOtherCase reports whether a user has the name in other letters: user names differ by more than case.
func (h *handler) takenInOtherCase(name string) bool {
	for _, x := range h.Directory.Stored() {
		if x.Kind == catalog.KindPerson && x.ID != name && strings.EqualFold(x.ID, name) && (x.Gone.IsZero() || x.Deactivated) {
			return true
		}
	}
	return false
}

// email returns the primary address, or the first one.
func email(in attributes) string {
	list, _ := get(in, "emails").([]any)
	out := ""
	for _, v := range list {
		e, _ := v.(map[string]any)
		if primary, _ := get(e, "primary").(bool); primary {
			return text(e, "value")
		}
		out = cmp.Or(out, text(e, "value"))
	}
	return out
}

func groupAttributes(h *handler, x catalog.Stored) attributes {
	out := attributes{"displayName": x.Title}
	c := h.Directory.Catalog()
	members := make([]any, 0, len(x.Members))
	for _, id := range x.Members {
		m := map[string]any{"value": id, "type": "User", "$ref": h.BaseURL + usersEndpoint + "/" + id}
		if p, ok := c.Person(id); ok {
			m["display"] = p.DisplayName
		}
		members = append(members, m)
	}
	if len(members) > 0 {
		out["members"] = members
	}
	return out
}

func groupRecord(h *handler, id string, in attributes) (catalog.Record, error) {
	rec := catalog.Record{Kind: catalog.KindGroup, ID: id, Title: text(in, "displayName")}
	if id == "" {
		if rec.ID = groupID(rec.Title); rec.ID == "" {
			return rec, invalidValue("The displayName of a group must contain a letter or a digit, because its id is made of it.")
		}
		// In the provider, another name does not look as if it gave a role, and people who may create groups there may choose it.
		if (rec.ID == catalog.GroupSecurity || rec.ID == catalog.GroupAuditors) && rec.Title != rec.ID {
			return rec, invalidValue("The group " + rec.ID + " has a role: its displayName must be exactly this name.")
		}
	}
	list, _ := get(in, "members").([]any)
	for _, v := range list {
		m, _ := v.(map[string]any)
		value := text(m, "value")
		if value == "" {
			return rec, invalidValue("Each member of a group needs a value: the id of a user.")
		}
		if t := text(m, "type"); t != "" && !strings.EqualFold(t, "User") {
			return rec, invalidValue("Members of a group are users: provision the members of nested groups instead.")
		}
		rec.Members = append(rec.Members, value)
	}
	if x, ok := h.Directory.Provisioned(h.ref(id)); ok && id != "" { // what SCIM has no attributes for
		rec.Description, rec.Lead, rec.Parent = x.Description, x.Lead, x.Parent
	}
	return rec, nil
}

// groupID makes the id of a group of its name: each run of characters that ids cannot have becomes a dash.
func groupID(name string) string {
	dash := false
	var out strings.Builder
	for _, r := range name {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_', r == '.':
			out.WriteRune(r)
			dash = false
		case !dash:
			out.WriteByte('-')
			dash = true
		}
	}
	const longest = 128
	return strings.Trim(out.String()[:min(out.Len(), longest)], "-_.")
}
