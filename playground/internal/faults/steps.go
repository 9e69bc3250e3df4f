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

// step is a kind of change. do returns what it did, in words; "" when there was nothing to do it to, so that another is
// chosen.
type step struct {
	name   string
	weight int
	do     func(ctx context.Context, d *drill) (string, error)
}

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
		{"placement", 3, move},
		{"onboard", 3, onboard},
		{"offboard", 2, offboard},
		{"external-workload", 3, external},
		{"class", 1, class},
		{"ticket", 4, byTicket},
		{"burst", 3, burst},
	}
}

// quick are the steps that only write.
func quick() []step {
	return []step{{"grant", 3, grant}, {"revoke", 3, revoke}, {"mode", 3, changeMode}, {"placement", 2, move}, {"deny", 1, deny},
		{"external-workload", 1, external}}
}

// burst is some changes at once.
func burst(ctx context.Context, d *drill) (string, error) {
	var all []string
	for range 3 + d.IntN(4) {
		did, err := d.choose(ctx, quick())
		if err != nil {
			return "", err
		}
		all = append(all, did)
	}
	return strings.Join(all, ", "), nil
}

// choose throws the dice among steps until one has something to do.
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
			d.doing = s.name
			did, err := s.do(ctx, d)
			if did != "" || err != nil {
				return s.name + ": " + did, err
			}
			break
		}
	}
	return "", fmt.Errorf("no step has anything to do")
}

// target is a resource that steps may play with, the action on it, and the name of what is written about it.
type target struct{ resource, action, short string }

func (d *drill) targets() []target {
	out := []target{{redisStem + vault, "redis:connect", vault}}
	if _, ok := d.world.classes["queue"]; ok {
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

// apps are those that grants name; the intruder is none of them.
var apps = []string{"888", "889", "777", "858", "101", "206", "204", "503", "602", "603", "676"}

// policyOf is the policy of the steps for a resource.
func (d *drill) policyOf(t target) *v1alpha1.AccessControlPolicy {
	if p, ok := d.world.policies["drill-"+t.short]; ok {
		return p.DeepCopy()
	}
	return &v1alpha1.AccessControlPolicy{ObjectMeta: metav1.ObjectMeta{Name: "drill-" + t.short}}
}

func (d *drill) statement(t target, app string) v1alpha1.Statement {
	d.statements++
	return v1alpha1.Statement{SID: fmt.Sprintf("s%d", d.statements), Effect: v1alpha1.EffectAllow,
		Subjects: []v1alpha1.Subject{v1alpha1.Subject(appStem + app)}, Actions: []v1alpha1.Action{v1alpha1.Action(t.action)},
		Resources: []v1alpha1.ResourceName{v1alpha1.ResourceName(t.resource)}}
}

// say adds a statement.
func (d *drill) say(ctx context.Context, t target, s v1alpha1.Statement) error {
	p := d.policyOf(t)
	p.Spec.Statements = append(p.Spec.Statements, s)
	return d.put(ctx, p)
}

func grant(ctx context.Context, d *drill) (string, error) {
	t, app := pick(d.Rand, d.targets()), pick(d.Rand, apps)
	return app + " to " + t.short, d.say(ctx, t, d.statement(t, app))
}

func seconds(n int) *metav1.Time {
	t := metav1.NewTime(time.Now().Truncate(time.Second).Add(time.Duration(n) * time.Second))
	return &t
}

func grantForSeconds(ctx context.Context, d *drill) (string, error) {
	t, app, n := pick(d.Rand, d.targets()), pick(d.Rand, apps), 2+d.IntN(3)
	s := d.statement(t, app)
	s.NotAfter = seconds(n)
	if err := d.say(ctx, t, s); err != nil {
		return "", err
	}
	return fmt.Sprintf("%s to %s for %d s", app, t.short, n), d.sleepUntil(ctx, s.NotAfter.Time)
}

func grantInSeconds(ctx context.Context, d *drill) (string, error) {
	t, app, n := pick(d.Rand, d.targets()), pick(d.Rand, apps), 2+d.IntN(2)
	s := d.statement(t, app)
	s.NotBefore = seconds(n)
	if err := d.say(ctx, t, s); err != nil {
		return "", err
	}
	return fmt.Sprintf("%s to %s in %d s", app, t.short, n), d.sleepUntil(ctx, s.NotBefore.Time)
}

// sleepUntil lets an instant pass that the step is about; what comes after it is judged.
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
	for name := range maps.Keys(d.world.policies) {
		if strings.HasPrefix(name, "drill-") {
			own = append(own, name)
		}
	}
	if len(own) == 0 {
		return "", nil
	}
	slices.Sort(own)
	p := d.world.policies[pick(d.Rand, own)].DeepCopy()
	if len(p.Spec.Statements) == 1 || d.IntN(5) == 0 {
		return fmt.Sprintf("all %d of %s", len(p.Spec.Statements), p.Name), d.drop(ctx, p)
	}
	i := d.IntN(len(p.Spec.Statements))
	p.Spec.Statements = slices.Delete(p.Spec.Statements, i, i+1)
	return fmt.Sprintf("one of %s", p.Name), d.put(ctx, p)
}
