package cilium

// NeedsGroups reports whether a policy (nil if there is none) must be replaced only after groups that differ in members from what they have to be.
// An allow of a group that is missing lets nobody in, and a deny of it refuses nobody. So the new spec needs the groups if
//   - it closes workloads, and would refuse the clients in the groups,
//   - it allows a group that it did not allow and that is not harmless, or all groups of a class: the group may contain addresses that are not its
//     subject's any more,
//   - it allows further addresses of any kind while it denies groups, so that the addresses in these might get in,
//   - it no longer denies some addresses, which an allowed group may contain that must not.
//
// A policy that allows more pods, or that allows less, needs no group: groups contain addresses outside of the members, and never those of pods.
// harmless reports whether everybody in a group, as it is in the members, may be let in. Such a group may still lack addresses.
func NeedsGroups(before, after map[string]any, harmless func(group string) bool) bool {
	switch {
	case len(after) == 0:
		return false
	case Closes(before, after) || len(before) > 0 && !sameJSON(before["endpointSelector"], after["endpointSelector"]):
		return true
	}
	opens := false
	for p := range uncovered(after["ingress"], before["ingress"]) {
		if p.kind == fromEndpoints {
			continue
		}
		opens = true
		if group, named, selected := groupsOf(p); selected || named && !harmless(group) {
			return true
		}
	}
	if opens && deniesGroups(after) {
		return true
	}
	if !closes(after) {
		return false // It has no denies, and everybody is let in whom no other policy refuses.
	}
	for p := range uncovered(before["ingressDeny"], after["ingressDeny"]) {
		if p.kind != fromEndpoints {
			return true
		}
	}
	return false
}

// groupsOf returns the group that a peer names, or whether it selects groups by their labels.
func groupsOf(p peer) (group string, named, selected bool) {
	value, _ := p.value.(map[string]any)
	group, named = value["cidrGroupRef"].(string)
	_, selected = value["cidrGroupSelector"]
	return group, named, selected
}

// deniesGroups reports whether a spec denies the addresses of groups.
func deniesGroups(spec map[string]any) bool {
	for _, r := range list(spec["ingressDeny"]) {
		for _, p := range peersOf(r) {
			if _, named, selected := groupsOf(p); named || selected {
				return true
			}
		}
	}
	return false
}
