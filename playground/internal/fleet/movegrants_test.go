package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/acp-io/acp/api/v1alpha1"
)

// grantEach replaces the grants for every resource by those of some applications, and returns the generations of the policies.
func (m *moving) grantEach(apps ...string) []int64 {
	m.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.granted = map[int][]string{}
	var generations []int64
	for i := range m.n {
		m.granted[i] = apps
		generation, err := m.grant(i, apps)
		if err != nil {
			m.Fatal(err)
		}
		generations = append(generations, generation)
	}
	return generations
}

// retain revokes the grants of all other applications for every resource, and waits until the members have it.
func (m *moving) retain(apps ...string) {
	m.Helper()
	generations := m.grantEach(apps...)
	for i := range m.n {
		m.until(fmt.Sprintf("the grant for resource %d is revoked during the moves", i), func() error {
			if err := m.isRealized(m.ctx, i, generations[i]); err != nil {
				return err
			}
			return m.isRevoked(m.ctx, i, lateApp)
		})
	}
}

// isRealized checks that the status reports a policy as realized, of at least a generation.
func (m *moving) isRealized(ctx context.Context, i int, generation int64) error {
	u, err := m.host.Resource(accessPolicies).Get(ctx, fmt.Sprint("p", i), metav1.GetOptions{})
	if err != nil {
		return err
	}
	var p v1alpha1.AccessControlPolicy
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &p); err != nil {
		return err
	}
	c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionRealized)
	switch {
	case c == nil || c.ObservedGeneration < generation:
		return fmt.Errorf("policy %d has no status of generation %d", i, generation)
	case c.Status != metav1.ConditionTrue:
		return fmt.Errorf("policy %d is not realized: %s", i, c.Message)
	}
	return nil
}

// isRevoked records that the revocation of a grant was reported as realized.
func (m *moving) isRevoked(ctx context.Context, i int, app string) error {
	for _, p := range m.probes {
		if err := p.isRevoked(ctx, m.object(i), app); err != nil {
			return err
		}
	}
	return nil
}

// grant writes the statements of a resource, and returns the generation of the policy.
func (m *moving) grant(i int, apps []string) (int64, error) {
	var statements []any
	for _, app := range apps {
		statements = append(statements, map[string]any{"sid": "app-" + app, "effect": "Allow", "subjects": []any{"trnv1:rsc:trip-com:iam:sa:app/" + app},
			"actions": []any{"redis:connect"}, "resources": []any{m.resource(i)}})
	}
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"statements": statements}})
	if err != nil {
		return 0, err
	}
	u, err := m.host.Resource(accessPolicies).Patch(m.ctx, fmt.Sprint("p", i), "application/merge-patch+json", patch, metav1.PatchOptions{})
	if err != nil {
		return 0, err
	}
	return u.GetGeneration(), nil
}

// churn grants each resource to one application after the other, and revokes each grant when it is realized, until the returned function
// is called. A grant and a revocation must reach every member in time, whatever moves.
func (m *moving) churn() (end func()) {
	m.Helper()
	ctx, cancel := context.WithCancel(m.ctx)
	var running sync.WaitGroup
	var passed atomic.Int64
	var app atomic.Int64
	app.Store(firstPassing)
	slowest := make([]time.Duration, m.n)
	for i := range m.n {
		running.Go(func() {
			for ctx.Err() == nil {
				took, err := m.pass(ctx, i, fmt.Sprint(app.Add(1)))
				if ctx.Err() != nil {
					return
				}
				if err != nil {
					m.Error(err)
					return
				}
				passed.Add(1)
				slowest[i] = max(slowest[i], took)
			}
		})
	}
	var once sync.Once
	end = func() {
		once.Do(func() {
			cancel()
			running.Wait()
			var worst time.Duration
			for _, d := range slowest {
				worst = max(worst, d)
			}
			m.Logf("%d grants were made and revoked meanwhile; the slowest change took %s", passed.Load(), worst.Round(time.Millisecond))
		})
	}
	m.Cleanup(end)
	return end
}

// pass makes a grant, revokes it when the members have it, and waits until the revocation is reported as realized. It returns how long the
// slower of the two took.
func (m *moving) pass(ctx context.Context, i int, app string) (slower time.Duration, err error) {
	name := m.object(i)
	for _, grant := range []bool{true, false} {
		m.mu.Lock()
		apps := append([]string{}, m.granted[i]...)
		if grant {
			apps = append(apps, app)
		}
		generation, err := m.grant(i, apps)
		m.mu.Unlock()
		if err != nil {
			return 0, err
		}
		began := time.Now()
		limited, cancel := context.WithTimeout(ctx, 2*time.Minute)
		err = poll(limited, fmt.Sprintf("resource %d: grant of %s: %v", i, app, grant), func(context.Context) error {
			for member, p := range m.probes {
				if p.admits(name, "") && p.admits(name, app) != grant {
					return errors.New("not in " + member)
				}
			}
			if grant {
				return nil
			}
			if err := m.isRealized(limited, i, generation); err != nil {
				return err
			}
			return m.isRevoked(limited, i, app)
		})
		cancel()
		if err != nil {
			return 0, err
		}
		slower = max(slower, time.Since(began))
	}
	return slower, nil
}
