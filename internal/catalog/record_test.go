package catalog

import (
	"strings"
	"testing"
)

// TestIDs checks which ids entities may have. Only people may be called by addresses.
func TestIDs(t *testing.T) {
	for id, want := range map[string]struct{ entity, person bool }{
		"alice":                          {true, true},
		"Alice.A-b_c1":                   {true, true},
		"a":                              {true, true},
		strings.Repeat("a", maxID):       {true, true},
		strings.Repeat("a", maxID+1):     {false, false},
		"alice@corp.example":             {false, true},
		"alice.a_b@a-b.corp.example":     {false, true},
		strings.Repeat("a", 126) + "@b":  {false, true},
		strings.Repeat("a", 127) + "@b":  {false, false},
		"":                               {false, false},
		"@corp.example":                  {false, false},
		"alice@":                         {false, false},
		"alice@corp@example":             {false, false},
		"alice@corp.example.":            {false, false},
		"alice@-corp.example":            {false, false},
		"alice@corp_example":             {false, false},
		"alice@corp.example\n":           {false, false},
		"alice+b@corp.example":           {false, false},
		"b_p.example#EXT#@corp.example":  {false, false},
		"alice@corp.example/x":           {false, false},
		"system:accessrequest:shop/cart": {false, false},
		"аlice@corp.example":             {false, false}, // the first letter is Cyrillic
		"*@corp.example":                 {false, false},
		"alice corp":                     {false, false},
	} {
		if validID(KindPerson, id) != want.person || validID(KindGroup, id) != want.entity || validID(KindApplication, id) != want.entity {
			t.Errorf("%q: person %t, group %t", id, validID(KindPerson, id), validID(KindGroup, id))
		}
	}
	for name, r := range map[string]Record{
		"Members": {Kind: KindGroup, ID: "storage", Members: []string{"alice@corp.example"}, Lead: "alice@corp.example"},
		"Leader":  {Kind: KindPerson, ID: "bob@corp.example", Leader: "alice@corp.example", Groups: []string{"storage"}},
		"Owner": {
			Kind: KindApplication, ID: "cart", Name: "trnv1:rsc:a:b:c:cart",
			Owners: []Owner{{OwnerPerson, "alice@corp.example"}, {OwnerGroup, "storage"}},
		},
	} {
		if _, err := r.Normalize(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, r := range map[string]Record{
		"Group":      {Kind: KindGroup, ID: "storage@corp.example"},
		"Parent":     {Kind: KindGroup, ID: "storage", Parent: "all@corp.example"},
		"Groups":     {Kind: KindPerson, ID: "bob", Groups: []string{"storage@corp.example"}},
		"OwnerGroup": {Kind: KindApplication, ID: "cart", Name: "trnv1:rsc:a:b:c:cart", Owners: []Owner{{OwnerGroup, "storage@corp.example"}}},
	} {
		if _, err := r.Normalize(); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if o, err := parseOwner("user:default/alice@corp.example"); err != nil || o != (Owner{OwnerPerson, "alice@corp.example"}) {
		t.Errorf("the owner is %v, %v", o, err)
	}
}
