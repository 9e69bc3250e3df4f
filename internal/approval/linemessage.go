package approval

import (
	"strconv"
	"strings"
	"time"

	"github.com/acp-io/acp/internal/message"
)

// LineMessage returns the message of a line that shows what an item grants, or of a line of EventVoided or EventReduced. Its text is the
// line. The message is derived from the line and not stored beside it, because approvals are bound to the digest of the lines: what a
// reader is shown in another language can therefore not differ from what was approved, and lines of earlier versions are shown in it, too.
// A line that is the same in every language, such as a value of an object, and a line in a form that this version does not write, is
// Verbatim.
func LineMessage(line string) message.Message {
	if m := lineMessage(line); m.Text == line {
		return m
	}
	return message.Verbatim(line)
}

// refusalFamilies are the families of the messages with which the policy core and the enforcers refuse statements.
var refusalFamilies = []string{"refusal", "istio", "unit", "members", "names", "map", "name", "port", "problem", "address", "action"}

// LineMessages returns the messages of lines.
func LineMessages(lines []string) []message.Message {
	out := make([]message.Message, len(lines))
	for i, l := range lines {
		out[i] = LineMessage(l)
	}
	return out
}

// EventLines returns the lines of an event of the kind EventVoided or EventReduced; nil for other kinds.
func EventLines(kind EventKind, comment string) []string {
	if kind != EventVoided && kind != EventReduced || comment == "" {
		return nil
	}
	return strings.Split(comment, "\n")
}

// lineMessage returns the message of a line. It may return another text, or the zero Message, for a line that is not in one of the forms.
func lineMessage(line string) message.Message {
	for _, p := range []struct {
		prefix string
		of     func(message.Message) message.Message
	}{
		{LineAdded, message.LineAdded}, {LineRemoved, message.LineRemoved}, {lineNoLonger, message.LineNoLonger}, {lineTakesAway, message.LineTakesAway},
	} {
		if rest, ok := strings.CutPrefix(line, p.prefix); ok {
			if m := lineMessage(rest); m.Text == rest {
				return p.of(m)
			}
			return message.Message{}
		}
	}
	first, rest, _ := strings.Cut(line, " ")
	switch first {
	case "allow":
		return allowMessage(rest)
	case "deny":
		return ruleMessage(rest, message.LineDeny)
	case "pods":
		return modeMessage(line)
	case "in", "enforced":
		return placementMessage(line)
	case "workloads":
		return outsideMessage(line)
	case "revoke":
		return revocationMessage(rest)
	case "refused:":
		return message.LineRefused(message.Recognize(rest, refusalFamilies...))
	case VerbCreate, VerbUpdate, VerbDelete:
		kind, name, _ := strings.Cut(rest, " ")
		return map[string]func(kind, name string) message.Message{
			VerbCreate: message.LineObjectCreate, VerbUpdate: message.LineObjectUpdate, VerbDelete: message.LineObjectDelete}[first](kind, name)
	case "and":
		count, digest, _ := strings.Cut(rest, " more: ")
		n, _ := strconv.Atoi(count)
		return message.LineMore(n, digest)
	case "package":
		return packageMessage(strings.TrimPrefix(line, linePackage))
	case "every":
		return message.LineEveryLater(strings.TrimSuffix(strings.TrimPrefix(line, lineEvery), lineLater))
	case "only":
		return message.LineHours(strings.TrimPrefix(line, lineHours))
	case "given":
		return message.LineGiven(strings.TrimPrefix(line, lineGiven))
	case "give", "take", "renew", "nothing":
		return holderMessage(line)
	case "nothing:":
		return message.LineNotCompiled()
	}
	return approversMessage(line)
}

// holderMessage returns the message of a line about what a version of an access package changes for a holder.
func holderMessage(line string) message.Message {
	if application, ok := strings.CutPrefix(line, lineHolderUnchanged); ok {
		return message.LineHolderUnchanged(application)
	}
	for _, p := range []struct {
		begin string
		of    func(application string, actions []string, resource string) message.Message
	}{{lineHolderGets, message.LineHolderGets}, {lineHolderLoses, message.LineHolderLoses}, {lineHolderRenews, message.LineHolderRenews}} {
		if rest, ok := strings.CutPrefix(line, p.begin); ok {
			application, rest, _ := strings.Cut(rest, ": ")
			actions, resource, _ := strings.Cut(rest, " on ")
			return p.of(application, strings.Split(actions, ", "), resource)
		}
	}
	return message.Message{}
}

// packageMessage returns the message of a line without linePackage.
func packageMessage(rest string) message.Message {
	name, version, _ := strings.Cut(rest, " version ")
	number, digest, _ := strings.Cut(version, ": ")
	n, _ := strconv.Atoi(number)
	return message.LinePackage(name, n, digest)
}

// allowMessage returns the message of a line without LineAllow: a rule of an enforcer, a statement, or what clients outside the fleet
// may connect to.
func allowMessage(rest string) message.Message {
	if connections, ok := strings.CutPrefix(rest, "connections to "); ok {
		for _, marker := range []string{" in member ", " in every member", " in members with ", " enforced by "} {
			if at := strings.Index(connections, marker); at >= 0 {
				return message.LineConnections(targetMessage(connections[:at]), placementMessage(connections[at+1:]))
			}
		}
		return message.Message{}
	}
	if strings.Contains(rest, " to pods with ") {
		return ruleMessage(rest, message.LineAllow)
	}
	client, access, _ := strings.Cut(rest, ": ")
	action, resource, _ := strings.Cut(access, " on ")
	who := clientMessage(client)
	if name, ok := strings.CutSuffix(resource, " until revoked"); ok {
		return message.LineAllowActionUntilRevoked(who, action, name)
	}
	if at := strings.LastIndex(resource, " for "); at >= 0 {
		if duration := resource[at+len(" for "):]; isDuration(duration) {
			return message.LineAllowActionFor(who, action, resource[:at], duration)
		}
	}
	return message.LineAllowAction(who, action, resource)
}

func isDuration(text string) bool {
	_, err := time.ParseDuration(text)
	return err == nil
}

// clientMessage returns the message of the client of a statement: the clients of an application outside the fleet, or its name.
func clientMessage(client string) message.Message {
	if subject, ok := strings.CutPrefix(client, "workloads outside the fleet of "); ok {
		return message.LineOutside(subject)
	}
	return message.Verbatim(client)
}

// ruleMessage returns the message of a rule, which has a peer, a target and a port with an optional request.
func ruleMessage(rest string, of func(peer, target message.Message, port string) message.Message) message.Message {
	rest, byIstio := strings.CutSuffix(rest, " by istio")
	rest, noAction := strings.CutSuffix(rest, ", a port of no action")
	peer, after, _ := strings.Cut(rest, " to pods with ")
	target, port, _ := strings.Cut(after, " on ")
	m := of(peerMessage(peer), targetMessage("pods with "+target), port)
	if noAction {
		m = message.LineNoAction(m)
	}
	if byIstio {
		m = message.LineByIstio(m)
	}
	return m
}

func peerMessage(peer string) message.Message {
	switch peer {
	case "anyone":
		return message.LineAnyone()
	case "no service account":
		return message.LineNoServiceAccount()
	}
	if at := strings.LastIndex(peer, " but "); at >= 0 && strings.HasPrefix(peer, "addresses ") {
		return message.LineBut(peerMessage(peer[:at]), peer[at+len(" but "):])
	}
	for _, p := range []struct {
		prefix string
		of     func(string) message.Message
	}{
		{"addresses ", message.LineAddresses}, {"workloads outside the fleet of ", message.LineOutside},
		{"service account ", message.LineServiceAccount}, {"service accounts of ", message.LineServiceAccounts},
	} {
		if name, ok := strings.CutPrefix(peer, p.prefix); ok {
			return p.of(name)
		}
	}
	return targetMessage(peer)
}

func targetMessage(target string) message.Message {
	label, _ := strings.CutPrefix(target, "pods with ")
	if key, values, ok := strings.Cut(strings.TrimSuffix(label, ")"), " in ("); ok {
		return message.LinePodsOf(key, values)
	}
	return message.LinePods(label)
}

// modeMessage returns the message of a line with the mode of a resource, in every member or in one.
func modeMessage(line string) message.Message {
	line, member, single := strings.Cut(line, " in member ")
	at := strings.LastIndex(line, " in ")
	if at < 0 {
		return message.Message{}
	}
	modes := map[string]func() message.Message{"Observe": message.LineModeObserve, "Audit": message.LineModeAudit, "Enforce": message.LineModeEnforce}
	of := modes[line[at+len(" in "):]]
	switch {
	case of == nil:
		return message.Message{}
	case single:
		return message.LineModeInMember(targetMessage(line[:at]), of(), member)
	}
	return message.LineMode(targetMessage(line[:at]), of())
}

// placementMessage returns the message of a line about members or an enforcer.
func placementMessage(line string) message.Message {
	if member, ok := strings.CutPrefix(line, "in member "); ok {
		return message.LineInMember(member)
	}
	if selector, ok := strings.CutPrefix(line, "in members with "); ok {
		return message.LineInMembersWith(selector)
	}
	if enforcer, ok := strings.CutPrefix(line, "enforced by "); ok {
		return message.LineEnforcedBy(enforcer)
	}
	return message.LineInEveryMember()
}

// outsideMessage returns the message of a line with an address of clients outside the fleet.
func outsideMessage(line string) message.Message {
	if address, ok := strings.CutPrefix(line, "workloads outside the fleet: "); ok {
		group, prefix, _ := strings.Cut(address, " ")
		return message.LineOutsideAddress(group, prefix)
	}
	client, prefix, _ := strings.Cut(line, ": ")
	return message.LineOutsideAddressOf(clientMessage(client), prefix)
}

func revocationMessage(rest string) message.Message {
	grant, after, _ := strings.Cut(rest, ": ")
	application, after, _ := strings.Cut(after, " may not use ")
	actions, after, _ := strings.Cut(after, " of ")
	return message.LineRevoke(grant, application, strings.Split(actions, ", "), strings.TrimSuffix(after, " any more"))
}

// eachStep is the line of EventVoided about approvals that different people have to give.
const eachStep = "each step by a different person"

// approversMessage returns the message of a line of EventVoided about a step that the request needs.
func approversMessage(line string) message.Message {
	if line == eachStep {
		return message.LineStepEach()
	}
	step, rest, _ := strings.Cut(line, ": ")
	count, from, _ := strings.Cut(rest, " of ")
	n, err := strconv.Atoi(count)
	if err != nil || from == "" {
		return message.Message{}
	}
	approvers := []message.Message{}
	for a := range strings.SplitSeq(from, ", ") {
		approvers = append(approvers, approverMessage(a))
	}
	return message.LineApprovers(StepName(step), n, approvers)
}

// approverMessage returns the message of an approver expression.
func approverMessage(approver string) message.Message {
	kind, name, _ := strings.Cut(approver, ":")
	switch kind {
	case FromLeader:
		return message.LineApproverLeader()
	case FromResourceOwner:
		return message.LineApproverResourceOwner()
	case FromApplicationOwner:
		return message.LineApproverApplicationOwner()
	case FromGroup:
		return message.LineApproverGroup(name)
	case FromPerson:
		return message.LineApproverPerson(name)
	case FromOwnerOf:
		return message.LineApproverOwnerOf(name)
	}
	return message.Verbatim(approver)
}
