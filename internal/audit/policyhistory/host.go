package policyhistory

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/backoff"
	"github.com/acp-io/acp/internal/hostcluster"
)

// preflight waits until the host serves ACP's kinds. It returns an error only when the context ends.
func (s *Source) preflight(ctx context.Context) error {
	delays := wait.Backoff{Duration: s.cfg.MinBackoff, Factor: 2, Jitter: 0.5, Steps: 1 << 30, Cap: s.cfg.MaxBackoff}
	for {
		problem := s.missing(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if problem == "" {
			s.clearProblem()
			return nil
		}
		s.setProblem(problem)
		if !backoff.Pause(ctx, clock.RealClock{}, delays.Step()) {
			return ctx.Err()
		}
	}
}

// missing returns the reason why the host cannot be watched, or "".
func (s *Source) missing(ctx context.Context) string {
	kinds, err := hostcluster.Unserved(ctx, s.cfg.Host, hostcluster.DecisionKinds())
	if err != nil {
		return explain(err)
	}
	if len(kinds) > 0 {
		return fmt.Sprintf("the host cluster has no %s.%s: apply the CRDs of deploy/crds to it", kinds[0].Plural, v1alpha1.GroupVersion.Group)
	}
	return ""
}

// explain returns an error of the host as one line that says what to do.
func explain(err error) string {
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Sprintf("the host cluster has not all kinds of %s: apply the CRDs of deploy/crds to it", v1alpha1.GroupVersion)
	case apierrors.IsUnauthorized(err):
		return "the host cluster refuses the credentials of the kubeconfig: " + err.Error()
	case apierrors.IsForbidden(err):
		return "the host cluster forbids to read the policies; bind the flow collector's role: " + err.Error()
	}
	return "the host cluster cannot be read: " + err.Error()
}

// recent is how long a problem is reported after its last occurrence. It exceeds the longest delay between two attempts of a watch.
const recent = 90 * time.Second

// Problem returns the known reason why the policies may be outdated, or "".
func (s *Source) Problem() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.problem == "" || (s.snapshot.Load() != nil && s.cfg.Now().Sub(s.problemAt) > recent) {
		return ""
	}
	return s.problem
}

// setProblem logs a problem once, not at every attempt.
func (s *Source) setProblem(problem string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.problem != problem || s.cfg.Now().Sub(s.problemAt) > recent {
		s.cfg.Log.Warn("the policies may be out of date; retrying", "problem", problem, "haveOlder", s.snapshot.Load() != nil)
	}
	s.problem, s.problemAt = problem, s.cfg.Now()
}

func (s *Source) clearProblem() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.problem = ""
}
