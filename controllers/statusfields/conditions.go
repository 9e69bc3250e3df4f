// Package statusfields constructs the fields of statuses: conditions and messages with deterministic and bounded texts, so
// that they do not flap, and bounded lists of members. It is pure.
package statusfields

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/controllers/statuscache"
	"github.com/acp-io/acp/internal/policy"
)

// maxMessage is the maximum length of messages of ACP's own kinds; those of conditions may be longer.
const maxMessage = 1024

// True returns a condition with the status True; SetConditions adds its time and generation.
func True(conditionType, reason, message string) metav1.Condition {
	return metav1.Condition{Type: conditionType, Status: metav1.ConditionTrue, Reason: reason, Message: Truncate(message)}
}

// False returns a condition with the status False; SetConditions adds its time and generation.
func False(conditionType, reason, message string) metav1.Condition {
	return metav1.Condition{Type: conditionType, Status: metav1.ConditionFalse, Reason: reason, Message: Truncate(message)}
}

// Accepted returns the condition Accepted. A problem that leaves the object out takes precedence over one that leaves a
// part out. ok is the message without problems.
func Accepted(problems []policy.Problem, ok string) metav1.Condition {
	if len(problems) == 0 {
		return True(v1alpha1.ConditionAccepted, v1alpha1.ReasonAccepted, ok)
	}
	worst := problems[max(0, slices.IndexFunc(problems, func(p policy.Problem) bool { return p.LeftOut }))]
	return False(v1alpha1.ConditionAccepted, worst.Reason, worst.Message.Text)
}

// Truncate shortens a message to the length that the API accepts. A message that JSON escapes is shortened further,
// because statuses are bounded in bytes of JSON.
func Truncate(s string) string {
	if len(s) > maxMessage {
		s = strings.ToValidUTF8(s[:maxMessage-3], "") + "..."
	}
	if SizeOfText(s) <= 2*maxMessage {
		return s
	}
	s = strings.ToValidUTF8(s, "")
	size := len("...")
	for i, r := range s {
		if size += SizeOfText(string(r)); size > 2*maxMessage {
			return s[:i] + "..."
		}
	}
	return s
}

// SetConditions returns a copy of old with conditions set for a generation.
func SetConditions(old []metav1.Condition, generation int64, now metav1.Time, conditions ...metav1.Condition) []metav1.Condition {
	out := append([]metav1.Condition(nil), old...)
	for _, c := range conditions {
		c.ObservedGeneration, c.LastTransitionTime = generation, now
		meta.SetStatusCondition(&out, c)
	}
	return out
}

// Propagated returns the condition Propagated: whether every member that needs the current objects has them, according to its engine or because
// they were read back. If no member needs any, it returns none.
func Propagated(reports []statuscache.Report, none metav1.Condition) metav1.Condition {
	return over(reports, none, v1alpha1.ConditionPropagated, v1alpha1.ReasonPropagated, v1alpha1.ReasonPropagating,
		func(c *v1alpha1.ClusterState) string {
			if c.Propagated || c.DesiredRevision == "" {
				return ""
			}
			return "not propagated"
		})
}

// Realized returns the condition Realized: whether every member that needs the unit was read back with it, and every other one without
// it. If no member needs it, it returns none.
func Realized(reports []statuscache.Report, none metav1.Condition) metav1.Condition {
	return over(reports, none, v1alpha1.ConditionRealized, v1alpha1.ReasonRealized, v1alpha1.ReasonNotRealized,
		func(c *v1alpha1.ClusterState) string {
			switch {
			case c.State == v1alpha1.MemberRealized:
				return ""
			case c.Message == "":
				return string(c.State)
			default:
				return fmt.Sprintf("%s (%s)", c.State, c.Message)
			}
		})
}

func over(reports []statuscache.Report, none metav1.Condition, conditionType, yes, no string,
	complaint func(*v1alpha1.ClusterState) string) metav1.Condition {
	var bad []string
	length := 0
	wanted := false
	for i := range reports {
		r := &reports[i]
		wanted = wanted || r.Wanted
		targets := 0
		for j := range r.Clusters {
			c := &r.Clusters[j]
			if c.DesiredRevision != "" {
				targets++
			}
			if length > maxMessage {
				continue // the rest would be cut off
			}
			if text := complaint(c); text != "" {
				bad = append(bad, member(c, len(reports) > 1, r.Resource)+": "+text)
				length += len(bad[len(bad)-1])
			}
		}
		switch {
		case !r.Wanted || targets > 0:
		case r.Problem != nil:
			return False(conditionType, r.Problem.Reason, r.Problem.Message.Text)
		default:
			return False(conditionType, v1alpha1.ReasonNoTarget, "the placement of "+r.Resource+
				" names no member, so nothing is in force: register members, or change the class's placement")
		}
	}
	switch {
	case len(bad) > 0:
		return False(conditionType, no, strings.Join(bad, "; "))
	case !wanted:
		none.Type = conditionType
		return none
	default:
		return True(conditionType, yes, "")
	}
}

func member(c *v1alpha1.ClusterState, many bool, resource string) string {
	if many {
		return resource + " in " + string(c.Name)
	}
	return string(c.Name)
}
