// Package demo holds the people of the demo and brings its workloads into the member clusters.
//
// It owns the pods' addresses; what the pods do to each other is the dataplane's traffic file.
package demo

// Password of all demo people. It protects nothing: the playground listens on this machine only.
const Password = "demo"

// Person who can log in. The same people are in the catalog, which tells the portal what they own and lead.
type Person struct {
	Username string
	Name     string
	Email    string
	Groups   []string
	// About is printed beside the login.
	About string
}

// People of the demo, in the order of the story.
func People() []Person {
	return []Person{
		{"alice", "Alice Moreau", "alice@trip.example", []string{"payments"}, "owns the applications 888 and 676 (team payments)"},
		{"bob", "Bob Tanaka", "bob@trip.example", []string{"storage"}, "owns the redis cluster bobs-cluster (team storage)"},
		{"carol", "Carol Lindqvist", "carol@trip.example", []string{"payments"}, "leads team payments"},
		{"dave", "Dave Okafor", "dave@trip.example", []string{"security"}, "security"},
		{"erin", "Erin Walsh", "erin@trip.example", []string{"search"}, "owns application 889 (team search)"},
		{"frank", "Frank Duarte", "frank@trip.example", []string{"storage"}, "leads team storage"},
		{"grace", "Grace Hoang", "grace@trip.example", []string{"auditors"}, "auditor"},
	}
}
