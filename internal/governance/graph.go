package governance

// Link combines all edges between one subject and one resource.
type Link struct {
	From, To    string
	Statements  int
	Allow, Deny bool
	Counting    bool
	// Broad reports whether an end covers more than one name.
	Broad bool
}

// Links combines edges, which must be ordered by subject and resource.
func Links(edges []Edge) []Link {
	var out []Link
	for i := range edges {
		e := &edges[i]
		if n := len(out); n == 0 || out[n-1].From != e.Subject || out[n-1].To != e.Resource {
			out = append(out, Link{From: e.Subject, To: e.Resource})
		}
		l := &out[len(out)-1]
		l.Statements++
		l.Allow = l.Allow || e.Effect == "Allow"
		l.Deny = l.Deny || e.Effect == "Deny"
		l.Counting = l.Counting || e.Counting
		l.Broad = l.Broad || e.Broad()
	}
	return out
}
