package preflight

import "github.com/acp-io/acp/internal/message"

// agentFindings checks the work agent of a member whose engine pulls.
func agentFindings(f *Facts) []Finding {
	switch {
	case !f.Engine.Pulls():
		return nil
	case f.Agent.Unread != "":
		return []Finding{{Severity: Warns, Code: AgentUnread, Message: message.PreflightAgentUnread(f.Agent.Unread), Remedy: message.RemedyAgentRights()}}
	case f.Agent.Silent:
		return []Finding{{Severity: Warns, Code: AgentSilent, Message: message.PreflightAgentSilent(f.Agent.SilentSince), Remedy: message.RemedyAgent()}}
	}
	return nil
}
