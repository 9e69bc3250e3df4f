package federation

import "slices"

// Report is what a propagation engine recorded about the present version of an object in one member. It is never evidence of what
// the member has: only what was read back from the member is.
type Report struct {
	// Handled reports whether the engine has handled the present version in the member, with or without success, and will not
	// write an earlier version there any more.
	Handled bool
	// MayRevert reports whether a request of the engine for another version, which got no answer, may have changed the object after it was read, or
	// may still change it.
	MayRevert bool
	// SharedWith is another engine that may still write into the member, which is moving from or to it, or "".
	SharedWith Engine
	// Applied reports whether, according to the engine, the member has the present version.
	Applied bool
	// Reason is why the member does not have the present version, as a status value of KubeFed (pkg/controller/sync/status) or of
	// another engine, or "". It may belong to an earlier version if Handled is false.
	Reason string
}

// Reporter returns what the engines know about objects. Package propagation implements it.
type Reporter interface {
	Report(o *Object, cluster string) Report
	Handled(o *Object) bool
}

// ReportIn returns what the member's engine recorded about the object there. Without a Reporter, every member's engine is KubeFed.
func (o *Object) ReportIn(cluster string) Report {
	if o.Reporter != nil {
		return o.Reporter.Report(o, cluster)
	}
	return o.Propagation.ReportIn(cluster)
}

// Handled reports whether KubeFed has handled the present version of the object, or need not handle it because all members that may
// have the object use other engines.
func (o *Object) Handled() bool {
	if o.Reporter != nil {
		return o.Reporter.Handled(o)
	}
	return o.Propagation.Seen
}

// WithReporter returns the object with a Reporter. The object itself, which others may share, stays as it is.
func (o *Object) WithReporter(r Reporter) *Object {
	if o == nil {
		return nil
	}
	out := *o
	out.Reporter = r
	return &out
}

// WithoutKubeFed returns the object without KubeFed's status, which stays as it is for ever when no member of the fleet depends on
// KubeFed any more. It would name members that left afterwards.
func (o *Object) WithoutKubeFed() *Object {
	out := *o
	out.Propagation = Propagation{}
	return &out
}

// ReportIn returns KubeFed's report about a member.
func (p Propagation) ReportIn(cluster string) Report {
	return Report{Handled: p.Seen, Applied: p.OK(cluster), Reason: p.Clusters[cluster]}
}

// IsPlacedIn reports whether the object has to exist in a member.
func (o *Object) IsPlacedIn(cluster string) bool { return slices.Contains(o.Placement, cluster) }
