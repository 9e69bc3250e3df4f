// Package oncall reads who is on call, from a file, PagerDuty or Opsgenie, and names the people of the catalog by their e-mail
// addresses. It keeps the answers in memory, so that a lookup never waits for another system, and reports that it is unknown who
// is on call when an answer is too old. It decides nothing: package approval limits the approvers of a step by its answers, and
// never adds anybody.
package oncall
