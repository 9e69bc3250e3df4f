package audit

// LossPager builds a page of losses from the rows of a backend.
type LossPager struct {
	// After is the end of the previous page; nil for the first page.
	After *Cursor
	page  LossPage
	limit int
	last  Cursor
}

// NewLossPager returns a pager for the query. It returns ErrInvalidQuery if the cursor is not one of a page.
func NewLossPager(q LossQuery) (*LossPager, error) {
	after, err := ParseCursor(q.Cursor)
	if err != nil {
		return nil, err
	}
	return &LossPager{After: after, limit: q.EffectiveLimit()}, nil
}

// Limit returns the number of losses to read: one more than a page has, which shows whether there is a next page.
func (p *LossPager) Limit() int { return p.limit + 1 }

// Add appends the next loss. The tie orders it among losses that ended at the same time.
func (p *LossPager) Add(l Loss, tie string) {
	if len(p.page.Items) == p.limit {
		p.page.Next = p.last.String()
		return
	}
	p.last = Cursor{At: l.To.UnixMicro(), Tie: tie}
	p.page.Items = append(p.page.Items, l)
}

// Page returns the page of the added losses.
func (p *LossPager) Page() LossPage { return p.page }
