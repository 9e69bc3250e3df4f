package hubble

import (
	"slices"

	flowpb "github.com/cilium/cilium/api/v1/flow"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// These fields of a FlowFilter are supported. A filter with other fields is rejected, because ignoring it would return flows that
// the caller excluded.
var understood = []protoreflect.Name{"verdict", "event_type", "traffic_direction", "reply"}

func checkFilters(filters []*flowpb.FlowFilter) error {
	for _, f := range filters {
		var other protoreflect.Name
		f.ProtoReflect().Range(func(fd protoreflect.FieldDescriptor, _ protoreflect.Value) bool {
			if !slices.Contains(understood, fd.Name()) {
				other = fd.Name()
			}
			return other == ""
		})
		if other != "" {
			return status.Errorf(codes.Unimplemented, "the playground's Hubble filters by %v only, not by %s", understood, other)
		}
	}
	return nil
}

// passes reports whether a flow matches any filter of the whitelist, if there is one, and none of the blacklist.
func passes(f *flowpb.Flow, whitelist, blacklist []*flowpb.FlowFilter) bool {
	matches := func(filter *flowpb.FlowFilter) bool { return matchesFilter(f, filter) }
	if len(whitelist) > 0 && !slices.ContainsFunc(whitelist, matches) {
		return false
	}
	return !slices.ContainsFunc(blacklist, matches)
}

func matchesFilter(f *flowpb.Flow, filter *flowpb.FlowFilter) bool {
	if v := filter.GetVerdict(); len(v) > 0 && !slices.Contains(v, f.GetVerdict()) {
		return false
	}
	if d := filter.GetTrafficDirection(); len(d) > 0 && !slices.Contains(d, f.GetTrafficDirection()) {
		return false
	}
	if r := filter.GetReply(); len(r) > 0 && !slices.Contains(r, f.GetIsReply().GetValue()) {
		return false
	}
	types := filter.GetEventType()
	return len(types) == 0 || slices.ContainsFunc(types, func(t *flowpb.EventTypeFilter) bool {
		return t.GetType() == f.GetEventType().GetType() && (!t.GetMatchSubType() || t.GetSubType() == f.GetEventType().GetSubType())
	})
}
