package faults

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
)

// step is a kind of change. do returns a description of the change that it made, or "" when there was nothing to change, in which
// case another step is chosen.
type step struct {
	name   string
	weight int
	do     func(ctx context.Context, d *drill) (string, error)
}

// steps returns the steps that a run takes between outages and manual changes.
func steps() []step {
	return []step{
		{"grant", 5, grant},
		{"revoke", 5, revoke},
		{"mode", 4, changeMode},
		{"cluster-mode", 2, changeClusterMode},
		{"temporary-audit", 2, temporaryAudit},
		{"grant-that-expires", 3, grantForSeconds},
		{"grant-that-begins", 1, grantInSeconds},
		{"white-list", 2, whiteList},
		{"deny", 2, deny},
		{"placement", 3, changePlacement},
		{"onboard", 3, onboard},
		{"offboard", 2, offboard},
		{"external-workload", 3, changeExternalWorkload},
		{"class", 1, toggleQueueClass},
		{"ticket", 4, ticketStep},
		{"burst", 3, burst},
	}
}

// writeOnlySteps returns the steps that write objects without waiting for anything.
func writeOnlySteps() []step {
	return []step{{"grant", 3, grant}, {"revoke", 3, revoke}, {"mode", 3, changeMode}, {"placement", 2, changePlacement}, {"deny", 1, deny},
		{"external-workload", 1, changeExternalWorkload}}
}

// burst makes three to six changes without waiting for the fleet in between.
func burst(ctx context.Context, d *drill) (string, error) {
	var all []string
	for range 3 + d.IntN(4) {
		did, err := d.choose(ctx, writeOnlySteps())
		if err != nil {
			return "", err
		}
		all = append(all, did)
	}
	return strings.Join(all, ", "), nil
}

// choose takes random steps, by weight, until one of them makes a change. It returns an error after 100 attempts.
func (d *drill) choose(ctx context.Context, among []step) (string, error) {
	total := 0
	for _, s := range among {
		total += s.weight
	}
	for range 100 {
		n := d.IntN(total)
		for _, s := range among {
			if n -= s.weight; n >= 0 {
				continue
			}
			d.currentStep = s.name
			did, err := s.do(ctx, d)
			if did != "" || err != nil {
				return s.name + ": " + did, err
			}
			break
		}
	}
	return "", fmt.Errorf("no step found anything to change")
}

// target is a resource that steps may change, the action that is granted on it, and the short name of the objects about it.
type target struct{ resource, action, short string }

func (d *drill) targets() []target {
	out := []target{{redisStem + alwaysEnforced, "redis:connect", alwaysEnforced}}
	if _, ok := d.model.classes["queue"]; ok {
		out = append(out, target{queueStem + "jobs", "queue:publish", "jobs"}, target{queueStem + "mails", "queue:publish", "mails"})
	}
	for _, r := range []string{"bobs-cluster", "orders-cache", "deals-cache", "ledger-db-cache"} {
		out = append(out, target{redisStem + r, "redis:connect", r})
	}
	return append(out, target{"trnv1:rsc:trip-com:mysql:clusters:orders-db", "mysql:connect", "orders-db"},
		target{"trnv1:rsc:trip-com:kafka:clusters:order-events", "kafka:connect", "order-events"},
		target{"trnv1:rsc:trip-com:http:services:price-service", "http:call", "price-service"},
		target{"trnv1:rsc:trip-com:grpc:services:fraud-check", "grpc:call", "fraud-check"})
}

// grantedApps are the applications that grants name. ungrantedApp is not one of them.
var grantedApps = []string{"888", "889", "777", "858", "101", "206", "204", "503", "602", "603", "676"}

// policyOf returns a copy of the policy that the steps maintain for a resource, or an empty one.
func (d *drill) policyOf(t target) *v1alpha1.AccessControlPolicy {
	if p, ok := d.model.policies["drill-"+t.short]; ok {
		return p.DeepCopy()
	}
	return &v1alpha1.AccessControlPolicy{ObjectMeta: metav1.ObjectMeta{Name: "drill-" + t.short}}
}

// statement returns a statement with a new SID that allows an application the action on a resource.
func (d *drill) statement(t target, app string) v1alpha1.Statement {
	d.statements++
	return v1alpha1.Statement{SID: fmt.Sprintf("s%d", d.statements), Effect: v1alpha1.EffectAllow,
		Subjects: []v1alpha1.Subject{v1alpha1.Subject(appStem + app)}, Actions: []v1alpha1.Action{v1alpha1.Action(t.action)},
		Resources: []v1alpha1.ResourceName{v1alpha1.ResourceName(t.resource)}}
}

// addStatement adds a statement to the policy of a resource.
func (d *drill) addStatement(ctx context.Context, t target, s v1alpha1.Statement) error {
	p := d.policyOf(t)
	p.Spec.Statements = append(p.Spec.Statements, s)
	return d.apply(ctx, p)
}

func grant(ctx context.Context, d *drill) (string, error) {
	t, app := pick(d.Rand, d.targets()), pick(d.Rand, grantedApps)
	return app + " to " + t.short, d.addStatement(ctx, t, d.statement(t, app))
}

// seconds returns the time n seconds from now.
func seconds(n int) *metav1.Time {
	t := metav1.NewTime(time.Now().Truncate(time.Second).Add(time.Duration(n) * time.Second))
	return &t
}

func grantForSeconds(ctx context.Context, d *drill) (string, error) {
	t, app, n := pick(d.Rand, d.targets()), pick(d.Rand, grantedApps), 2+d.IntN(3)
	s := d.statement(t, app)
	s.NotAfter = seconds(n)
	if err := d.addStatement(ctx, t, s); err != nil {
		return "", err
	}
	return fmt.Sprintf("%s to %s for %d s", app, t.short, n), d.sleepUntil(ctx, s.NotAfter.Time)
}

func grantInSeconds(ctx context.Context, d *drill) (string, error) {
	t, app, n := pick(d.Rand, d.targets()), pick(d.Rand, grantedApps), 2+d.IntN(2)
	s := d.statement(t, app)
	s.NotBefore = seconds(n)
	if err := d.addStatement(ctx, t, s); err != nil {
		return "", err
	}
	return fmt.Sprintf("%s to %s in %d s", app, t.short, n), d.sleepUntil(ctx, s.NotBefore.Time)
}

// sleepUntil waits until an instant at which the step changes a verdict has passed, so that the checks see the state after it.
func (d *drill) sleepUntil(ctx context.Context, at time.Time) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Until(at)):
		return nil
	}
}

func revoke(ctx context.Context, d *drill) (string, error) {
	var own []string
	for name := range maps.Keys(d.model.policies) {
		if strings.HasPrefix(name, "drill-") {
			own = append(own, name)
		}
	}
	if len(own) == 0 {
		return "", nil
	}
	slices.Sort(own)
	p := d.model.policies[pick(d.Rand, own)].DeepCopy()
	if len(p.Spec.Statements) == 1 || d.IntN(5) == 0 {
		return fmt.Sprintf("all %d of %s", len(p.Spec.Statements), p.Name), d.remove(ctx, p)
	}
	i := d.IntN(len(p.Spec.Statements))
	p.Spec.Statements = slices.Delete(p.Spec.Statements, i, i+1)
	return fmt.Sprintf("one of %s", p.Name), d.apply(ctx, p)
}
