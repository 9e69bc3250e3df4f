package faults

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/acp-io/acp/api/v1alpha1"
)

// hand is something that a human does in a member, where nothing of ACP's should be touched. do returns what it did, in words;
// "" when there was nothing to do it to.
type hand struct {
	name string
	do   func(ctx context.Context, d *drill) (string, error)
}

func hands() []hand {
	return append([]hand{{"hand-deletes", handDeletes}, {"hand-opens", handOpens}, {"hand-relabels", handRelabels}, {"hand-deletes-group", handDeletesGroup}},
		handsBeside()...)
}

// handsWith something in their name.
func handsWith(text string) []hand {
	return slices.DeleteFunc(hands(), func(h hand) bool { return !strings.Contains(h.name, text) })
}

// byHand makes a human do something, of each kind once before any comes again. A hand that finds nothing to do comes again
// when the others were there.
func (d *drill) byHand(ctx context.Context) (string, error) {
	all := handsWith(d.onlyHands)
	for range all {
		if len(d.handTurn) == 0 {
			d.handTurn = d.Perm(len(all))
		}
		h := all[d.handTurn[0]]
		d.handTurn = d.handTurn[1:]
		d.doing = h.name
		did, err := h.do(ctx, d)
		if err != nil {
			return "", fmt.Errorf("%s: %w", h.name, err)
		}
		if did != "" {
			d.handsCame[h.name]++
			return h.name + ": " + did, nil
		}
	}
	return d.choose(ctx, steps())
}

// everyHandCame is an error when one of the hands that were asked for never found anything to do.
func (d *drill) everyHandCame() error {
	if d.onlyHands == "" {
		return nil
	}
	var never []string
	for _, h := range handsWith(d.onlyHands) {
		if d.handsCame[h.name] == 0 {
			never = append(never, h.name)
		}
	}
	if len(never) > 0 {
		return fmt.Errorf("never done in %d steps: %s", d.number, strings.Join(never, ", "))
	}
	return nil
}

// person is a client of a member as an administrator who may do everything, or as one whom a guard has to refuse.
func (d *drill) person(member string) (client dynamic.Interface, who string, err error) {
	config := d.Fleet.AdminConfig(member)
	who = "an administrator"
	if d.IntN(2) == 0 {
		who = "somebody who breaks the glass"
		config.Impersonate = rest.ImpersonationConfig{UserName: "drill", Groups: []string{"system:masters", "acp:break-glass"}}
	}
	client, err = dynamic.NewForConfig(config)
	return client, who, err
}

// found is an object of a healthy member that a hand may touch: not the vault's, nor what is about every resource.
func (d *drill) found(ctx context.Context) (member string, u *unstructured.Unstructured, err error) {
	healthy := d.healthy()
	if len(healthy) == 0 {
		return "", nil, nil
	}
	member = pick(d.Rand, healthy)
	all, err := d.managed(ctx, member)
	if err != nil {
		return "", nil, fmt.Errorf("look into %s: %w", member, err)
	}
	touchable := map[string][]unstructured.Unstructured{}
	for _, u := range all {
		if d.podOf(member, &u) != "" && !strings.Contains(u.GetName(), vault) {
			touchable[u.GetKind()] = append(touchable[u.GetKind()], u)
		}
	}
	if len(touchable) == 0 {
		return "", nil, nil
	}
	of := touchable[pick(d.Rand, slices.Sorted(maps.Keys(touchable)))] // few units have objects of Istio's
	slices.SortFunc(of, func(a, b unstructured.Unstructured) int { return strings.Compare(a.GetName(), b.GetName()) })
	u = &of[d.IntN(len(of))]
	if u.GetKind() != istioKind { // what Cilium enforces has to stay as it is when a hand is at Istio's
		pod := d.podOf(member, u)
		d.dogs[member].forgive(func(a attempt) bool { return a.To == pod })
	}
	return member, u, nil
}

// podOf is the server that an object of a member selects by one value; "": it selects none, or many.
func (d *drill) podOf(member string, u *unstructured.Unstructured) string {
	selector := "endpointSelector"
	if u.GetKind() == istioKind {
		selector = "selector"
	}
	labels, _, err := unstructured.NestedStringMap(u.Object, "spec", selector, "matchLabels")
	if err != nil {
		return ""
	}
	for _, s := range d.scene.servers[member] {
		for k, v := range labels {
			if s.labels[strings.TrimPrefix(k, "k8s:")] == v {
				return s.pod
			}
		}
	}
	return ""
}

// touch does something to the object that was found.
func (d *drill) touch(ctx context.Context, do func(client dynamic.ResourceInterface, u *unstructured.Unstructured) error) (string, error) {
	member, u, err := d.found(ctx)
	if err != nil || u == nil {
		return "", err
	}
	client, who, err := d.person(member)
	if err != nil {
		return "", err
	}
	i := slices.IndexFunc(kinds, func(k carried) bool { return k.kind == u.GetKind() })
	return outcome(fmt.Sprintf("%s in %s by %s", called(u.GetKind(), u), member, who), do(client.Resource(kinds[i].target).Namespace(u.GetNamespace()), u))
}

// outcome tells what became of it. A guard may refuse it, which is right, too.
func outcome(what string, err error) (string, error) {
	switch {
	case apierrors.IsNotFound(err) || apierrors.IsConflict(err):
		return what + ", too late", nil
	case apierrors.IsForbidden(err) || apierrors.IsInvalid(err):
		return what + ", refused", nil
	case err != nil:
		return "", fmt.Errorf("touch %s: %w", what, err)
	}
	return what, nil
}

func handDeletes(ctx context.Context, d *drill) (string, error) {
	return d.touch(ctx, func(client dynamic.ResourceInterface, u *unstructured.Unstructured) error {
		return client.Delete(ctx, u.GetName(), metav1.DeleteOptions{})
	})
}

// handDeletesGroup takes the addresses of external workloads away.
func handDeletesGroup(ctx context.Context, d *drill) (string, error) {
	healthy := d.healthy()
	if len(healthy) == 0 {
		return "", nil
	}
	member := pick(d.Rand, healthy)
	all, err := d.managed(ctx, member)
	if err != nil {
		return "", fmt.Errorf("look into %s: %w", member, err)
	}
	all = slices.DeleteFunc(all, func(u unstructured.Unstructured) bool { return u.GetKind() != "CiliumCIDRGroup" })
	if len(all) == 0 {
		return "", nil
	}
	slices.SortFunc(all, func(a, b unstructured.Unstructured) int { return strings.Compare(a.GetName(), b.GetName()) })
	name := all[d.IntN(len(all))].GetName()
	client, who, err := d.person(member)
	if err != nil {
		return "", err
	}
	d.dogs[member].forgive(func(a attempt) bool { return a.source.labels == nil })
	return outcome(fmt.Sprintf("%s in %s by %s", name, member, who), client.Resource(groups).Delete(ctx, name, metav1.DeleteOptions{}))
}

// handOpens lets everybody in.
func handOpens(ctx context.Context, d *drill) (string, error) {
	return d.touch(ctx, func(client dynamic.ResourceInterface, u *unstructured.Unstructured) error {
		spec, _, err := unstructured.NestedMap(u.Object, "spec")
		if err != nil {
			return err
		}
		if u.GetKind() == istioKind {
			spec["action"], spec["rules"] = "ALLOW", []any{map[string]any{}}
		} else {
			spec["ingress"] = []any{map[string]any{"fromEntities": []any{"all"}}}
		}
		u.Object["spec"] = spec
		_, err = client.Update(ctx, u, metav1.UpdateOptions{FieldManager: "kubectl-edit"})
		return err
	})
}

func handRelabels(ctx context.Context, d *drill) (string, error) {
	return d.touch(ctx, func(client dynamic.ResourceInterface, u *unstructured.Unstructured) error {
		labels := u.GetLabels()
		delete(labels, v1alpha1.LabelManagedBy)
		labels["somebody"] = "was-here"
		u.SetLabels(labels)
		_, err := client.Update(ctx, u, metav1.UpdateOptions{FieldManager: "kubectl-label"})
		return err
	})
}
