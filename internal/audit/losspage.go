package audit

// LossPager makes a page of losses from what a backend finds, in its order.
type LossPager struct {
	// After is where the page before ended; nil: the first page.
	After *Cursor
	page  LossPage
	limit int
	last  Cursor
}

// NewLossPager returns ErrInvalidQuery for a cursor that no page has returned.
func NewLossPager(q LossQuery) (*LossPager, error) {
	after, err := ParseCursor(q.Cursor)
	if err != nil {
		return nil, err
	}
	return &LossPager{After: after, limit: q.Limited()}, nil
}

// Limit is how many losses to look for: one more than a page has, which tells whether there is a next one.
func (p *LossPager) Limit() int { return p.limit + 1 }

// Add takes the next loss; the tie orders it among those that ended at the same time.
func (p *LossPager) Add(l Loss, tie string) {
	if len(p.page.Items) == p.limit {
		p.page.Next = p.last.String()
		return
	}
	p.last = Cursor{At: l.To.UnixMicro(), Tie: tie}
	p.page.Items = append(p.page.Items, l)
}

// Page is what was added.
func (p *LossPager) Page() LossPage { return p.page }
