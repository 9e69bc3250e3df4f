// Package demo contains the users of the demo and creates its workloads in the member clusters.
//
// The package assigns the addresses of the pods. The connections between the pods are defined by the traffic file of the dataplane.
package demo

import (
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
)

// Password is the password of all users of the demo. It protects nothing, because the playground listens on this machine only.
const Password = "demo"

// Person is a user who can log in. The catalog contains the same users with what they own and whom they manage.
type Person struct {
	Username string
	Name     string
	Email    string
	Groups   []string
	// About is a description that is printed next to the login.
	About string
}

// People contains the main users of the demo, in the order of its walkthrough.
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

// LoadPeople reads the other users of the company from the CSV file of the catalog. They can log in like the main users.
func LoadPeople(path string) ([]Person, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the demo's people: %w", err)
	}
	defer func() { _ = f.Close() }() // only read
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("read the demo's people in %s: %w", path, err)
	}
	if len(rows) == 0 || !slices.Equal(rows[0], []string{"id", "title", "email", "jobTitle", "leader", "groups"}) {
		return nil, fmt.Errorf("read the demo's people in %s: %w", path, errors.New("its columns are not those of a catalog's people.csv"))
	}
	out := make([]Person, 0, len(rows)-1)
	for _, row := range rows[1:] {
		out = append(out, Person{Username: row[0], Name: row[1], Email: row[2], Groups: strings.Split(row[5], ";"), About: row[3]})
	}
	return out, nil
}
