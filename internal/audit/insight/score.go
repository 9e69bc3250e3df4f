package insight

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/message"
)

// The parts of a score add up to 100. Time is the largest part, because nothing compensates for a short observation.
const (
	ofObserved = 40
	ofWeekly   = 20
	// ofEach is the weight of losses, newcomers, sources without a name, and long-lived connections.
	ofEach = 10
)

// Shares at which a part has no points left; below, points decrease linearly.
const (
	worstLoss         = 0.05
	worstNewcomers    = 0.25
	worstUnattributed = 0.20
	worstLongLived    = 1.0
)

// Evidence computes how reliable the flows of a resource are: whether enough was seen to close it.
func Evidence(ctx context.Context, r Reader, in EvidenceInput) (Score, error) {
	if in.Snapshot == nil || in.Resource == "" {
		return Score{}, errors.New("score the evidence: the policies and the resource are needed")
	}
	scores, err := EvidenceOf(ctx, r, in, []string{in.Resource})
	return scores[in.Resource], err
}

// EvidenceOf scores many resources with one query to the store. The input's Resource is ignored.
func EvidenceOf(ctx context.Context, r Reader, in EvidenceInput, resources []string) (map[string]Score, error) {
	if in.Snapshot == nil {
		return nil, errors.New("score the evidence: the policies are needed")
	}
	if in.Window <= 0 {
		in.Window = DefaultWindow
	}
	if in.Threshold <= 0 {
		in.Threshold = DefaultThreshold
	}
	since := in.Now.Add(-in.Window)
	watch := in.Watch
	if watch == nil {
		var err error
		if watch, err = Watched(ctx, r, since, in.Now, nil); err != nil {
			return nil, fmt.Errorf("score the evidence: %w", err)
		}
	}
	j := newDecider(newPolicyState(in.Snapshot, in.Now))
	found := make(map[string]*observedClients, len(resources))
	for _, name := range resources {
		found[name] = &observedClients{clients: map[string]client{}}
	}
	if len(resources) > 0 {
		err := r.Totals(ctx, audit.Filter{Since: since, Until: in.Now, Resources: resources}, func(t audit.Total) error {
			if c := found[t.Resource]; c != nil {
				c.add(j, &t)
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("score the evidence: %w", err)
		}
	}
	out := make(map[string]Score, len(resources))
	for name, c := range found {
		placed, known := in.placedIn(name)
		if !known {
			out[name] = c.unknown(&in)
			continue
		}
		out[name] = c.score(watch.Of(placed), &in)
	}
	return out, nil
}

// placedIn returns where a resource is placed, or would be by the change of its class.
func (in *EvidenceInput) placedIn(resource string) ([]string, bool) {
	placed, known := in.Fleet.PlacedIn(in.Snapshot, resource)
	if in.Placement == nil || len(in.Fleet.Everywhere) > 0 {
		return placed, known
	}
	next, ok := in.Fleet.Selects(*in.Placement)
	if _, has := in.Snapshot.ResourceClassOf(resource); !has {
		return next, ok
	}
	return sortedNames(append(placed, next...)), known && ok
}

// unknown returns the score of a resource whose members are not known, because the watched members may not be all.
func (c *observedClients) unknown(in *EvidenceInput) Score {
	s := c.score(&Watch{}, in)
	s.Parts[0].Missing = message.EvidencePlacementUnknown()
	return s
}

// observedClients collects the clients of one resource.
type observedClients struct {
	connections, unattributed int64
	clients                   map[string]client // by name, or by a description of the source
}

type client struct {
	first time.Time
	// named reports whether it has a name, and allowed whether none of its connections would be refused in Enforce.
	named, allowed bool
	// decided reports whether a connection of it was seen when it was opened, with a verdict.
	decided bool
}

func (c *observedClients) add(j *decider, t *audit.Total) {
	if t.Subject == "" && t.Source == ownNode {
		return
	}
	c.connections += t.Count
	who := cmp.Or(t.Subject, t.Source)
	says := j.decide(&t.Edge, asEnforced)
	allowed := says.why == nil && isKept(says.of[0].Verdict)
	if t.Subject == "" && !allowed {
		c.unattributed += t.Count
	}
	was, known := c.clients[who]
	if !known {
		was = client{first: t.FirstSeen, named: t.Subject != "", allowed: true}
	}
	was.first = audit.Earlier(was.first, t.FirstSeen)
	was.allowed = was.allowed && allowed
	// The verdict about a request is not a verdict about the opening of its connection.
	was.decided = was.decided || t.Verdict != audit.VerdictUnknown && t.Protocol != audit.ProtocolHTTP
	c.clients[who] = was
}

func (c *observedClients) score(w *Watch, in *EvidenceInput) Score {
	s := Score{Threshold: in.Threshold, Parts: []Part{
		observedPart(w, in.Window), weeklyPart(w), lossPart(w), c.newcomersPart(w, in), c.unattributedPart(w), c.longLivedPart(w),
	}}
	for _, who := range c.clients {
		switch {
		case who.named && who.allowed:
			s.Clients++
		case who.named:
			s.Clients++
			s.Uncovered++
		case !who.allowed:
			s.Unattributed++
		}
	}
	s.Enough = true
	for _, p := range s.Parts {
		s.Value += p.Points
		s.Enough = s.Enough && p.Points > 0
	}
	s.Enough = s.Enough && s.Value >= s.Threshold
	return s
}

// part converts a share from 0 to 1 into points; only a complete share has all points. missing is called if some are
// missing.
func part(name PartName, of int, share float64, missing func() message.Message) Part {
	points := int(float64(of) * min(max(share, 0), 1))
	if share < 1 {
		points = min(points, of-1)
	}
	p := Part{Name: name, Points: points, Of: of}
	if points < of {
		p.Missing = missing()
	}
	return p
}

// lacking is part for something of which there should be none.
func lacking(name PartName, share, worst float64, missing func() message.Message) Part {
	return part(name, ofEach, 1-share/worst, missing)
}

// enoughTime tolerates the time that a restart of the collector takes.
const enoughTime = 0.995

func fully(share float64) float64 {
	if share >= enoughTime {
		return 1
	}
	return share
}

func observedPart(w *Watch, window time.Duration) Part {
	cluster, watched, ok := w.worst()
	never, ended := w.Unwatched()
	switch {
	case !ok:
		return part(PartObserved, ofObserved, 0, message.EvidencePlacedNowhere)
	case len(never) > 0 && len(never) == len(w.Members):
		return part(PartObserved, ofObserved, 0, message.EvidenceNotWatched)
	case len(never) > 0:
		return part(PartObserved, ofObserved, 0,
			func() message.Message { return message.EvidenceMembersNotWatched(listed(never)) })
	case len(ended) > 0:
		return part(PartObserved, ofObserved, 0,
			func() message.Message { return message.EvidenceMembersNoLongerWatched(listed(ended)) })
	}
	return part(PartObserved, ofObserved, fully(float64(watched)/float64(window)),
		func() message.Message { return message.EvidenceWindowNotFull(cluster, span(watched), span(window)) })
}

// weeklyPart checks whether each weekday was watched once, hour by hour, as far as the window contains it, because
// weekly jobs are only visible on their day. The days are UTC.
func weeklyPart(w *Watch) Part {
	best, length := map[time.Weekday]time.Duration{}, map[time.Weekday]time.Duration{}
	for i := range w.days() {
		watched := day
		for _, m := range w.Members {
			watched = min(watched, m.Days[i].Watched)
		}
		d := w.Members[0].Days[i]
		on := d.From.Weekday()
		best[on], length[on] = max(best[on], watched), max(length[on], d.To.Sub(d.From))
	}
	var have, need time.Duration
	var missing []message.Message
	for on := range time.Weekday(7) {
		have, need = have+best[on], need+length[on]
		if float64(best[on]) < enoughTime*float64(length[on]) {
			missing = append(missing, weekdays[on]())
		}
	}
	if have == 0 {
		return part(PartWeekly, ofWeekly, 0, message.EvidenceNotWatched)
	}
	return part(PartWeekly, ofWeekly, fully(float64(have)/float64(need)),
		func() message.Message { return message.EvidenceWeekdaysNotWatched(missing) })
}

// weekdays has the names of the days of the week by time.Weekday.
var weekdays = [7]func() message.Message{message.WeekdaySunday, message.WeekdayMonday, message.WeekdayTuesday, message.WeekdayWednesday,
	message.WeekdayThursday, message.WeekdayFriday, message.WeekdaySaturday}

func lossPart(w *Watch) Part {
	if _, watched, ok := w.worst(); !ok || watched <= 0 {
		return part(PartLoss, ofEach, 0, message.EvidenceNotWatched)
	}
	m, share := w.lossiest()
	return lacking(PartLoss, share, worstLoss,
		func() message.Message { return message.EvidenceFlowsLost(int(m.Lost), m.Cluster, percent(share)) })
}

func (c *observedClients) newcomersPart(w *Watch, in *EvidenceInput) Part {
	if _, watched, ok := w.worst(); !ok || watched <= 0 {
		return part(PartNewcomers, ofEach, 0, message.EvidenceNotWatched)
	}
	half := in.Now.Add(-in.Window / 2)
	n := 0
	for _, who := range c.clients {
		if !who.allowed && !who.first.Before(half) {
			n++
		}
	}
	share := float64(n) / float64(max(len(c.clients), 1))
	perDay := float64(n) / max(in.Window.Hours()/2/24, 1)
	return lacking(PartNewcomers, share, worstNewcomers,
		func() message.Message {
			return message.EvidenceNewcomers(n, len(c.clients), fmt.Sprintf("%.1f", perDay))
		})
}

func (c *observedClients) unattributedPart(w *Watch) Part {
	if _, watched, ok := w.worst(); !ok || watched <= 0 {
		return part(PartUnattributed, ofEach, 0, message.EvidenceNotWatched)
	}
	share := float64(c.unattributed) / float64(max(c.connections, 1))
	return lacking(PartUnattributed, share, worstUnattributed,
		func() message.Message {
			return message.EvidenceSourcesWithoutName(int(c.unattributed), percent(share))
		})
}

func (c *observedClients) longLivedPart(w *Watch) Part {
	if _, watched, ok := w.worst(); !ok || watched <= 0 {
		return part(PartLongLived, ofEach, 0, message.EvidenceNotWatched)
	}
	n := 0
	for _, who := range c.clients {
		if !who.decided {
			n++
		}
	}
	return lacking(PartLongLived, float64(n)/float64(max(len(c.clients), 1)), worstLongLived,
		func() message.Message { return message.EvidenceLongLivedOnly(n, len(c.clients)) })
}

// percent never rounds a positive share to 0.
func percent(share float64) string {
	if share > 0 && share < 0.0005 {
		return "<0.1%"
	}
	return fmt.Sprintf("%.1f%%", 100*share)
}
