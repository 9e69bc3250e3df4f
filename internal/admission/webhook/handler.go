package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	ctrladmission "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/admission"
	"github.com/acp-io/acp/internal/externalchanges/event"
	"github.com/acp-io/acp/internal/organization"
	"github.com/acp-io/acp/internal/policy"
)

// maxWarning is the number of bytes of a warning that API servers pass on.
const maxWarning = 256

// Handler answers admission reviews of ACP's kinds.
type Handler struct {
	// Cached objects are read first. They may be slightly out of date, so a denial is confirmed with Live ones.
	Cached, Live client.Reader
	Now          func() time.Time
	// Report is called for each admitted change and must not block. It may be nil.
	Report func(event.Change)
	// Own are the users of the portal and the adapter, whose changes are not reported. Nil means PortalUser and AdapterUser.
	Own []string
}

var _ ctrladmission.Handler = (*Handler)(nil)

// rule reviews one request, given the objects that it needs.
type rule struct {
	needs need
	judge func(policy.Input) admission.Verdict
	// bounds reviews the request against the organizations; nil if it does not depend on them.
	bounds func(*organization.Index) admission.Verdict
}

// Handle answers one review, and reports the change if it is admitted.
func (h *Handler) Handle(ctx context.Context, req ctrladmission.Request) ctrladmission.Response {
	response := h.judge(ctx, req)
	if response.Allowed && h.Report != nil {
		if c, ok := h.change(&req); ok {
			h.Report(c)
		}
	}
	return response
}

// judge answers one review. A request that cannot be reviewed is admitted with a warning, because compilation is safe
// by itself.
func (h *Handler) judge(ctx context.Context, req ctrladmission.Request) ctrladmission.Response {
	r, err := h.rule(&req)
	if err != nil {
		return ctrladmission.Errored(http.StatusBadRequest, err)
	}
	if r == nil {
		return ctrladmission.Allowed("")
	}
	verdict, err := h.ask(ctx, h.Cached, r)
	if err == nil && len(verdict.Denials) > 0 {
		verdict, err = h.ask(ctx, h.Live, r)
	}
	if err != nil {
		log.FromContext(ctx).Error(err, "Admitted without checking other objects", "kind", req.Kind.Kind, "name", req.Name)
		return ctrladmission.Allowed("").WithWarnings("it was not checked against other objects, because they could not be read; see its status")
	}
	response := ctrladmission.Allowed("")
	if len(verdict.Denials) > 0 {
		response = ctrladmission.Denied(strings.Join(verdict.Denials, "; "))
	}
	for _, w := range verdict.Warnings {
		response = response.WithWarnings(clip(w))
	}
	return response
}

func (h *Handler) ask(ctx context.Context, from client.Reader, r *rule) (admission.Verdict, error) {
	in, err := gather(ctx, from, r.needs)
	if err != nil {
		return admission.Verdict{}, err
	}
	verdict := r.judge(in)
	if r.bounds != nil {
		var all v1alpha1.OrganizationList
		if err := list(ctx, from, &all); err != nil {
			return admission.Verdict{}, err
		}
		of := r.bounds(organization.NewIndex(pointers(all.Items)))
		verdict.Denials, verdict.Warnings = append(verdict.Denials, of.Denials...), append(verdict.Warnings, of.Warnings...)
	}
	return verdict, nil
}

// rule returns the rule for a request, or nil if the request does not depend on other objects.
func (h *Handler) rule(req *ctrladmission.Request) (*rule, error) {
	deleted := req.Operation == admissionv1.Delete
	switch req.Kind.Kind {
	case "AccessControlPolicy":
		return change(req, needs(classes, resources), func(old, now *v1alpha1.AccessControlPolicy, in policy.Input) admission.Verdict {
			if now == nil || old != nil && equality.Semantic.DeepEqual(old.Spec, now.Spec) {
				return admission.Verdict{}
			}
			return admission.Policy(old, now, in, h.Now())
		})
	case "ProtectedResource":
		if deleted {
			return change(req, 0, func(old, _ *v1alpha1.ProtectedResource, _ policy.Input) admission.Verdict {
				return admission.DeleteProtectedResource(old)
			})
		}
		return change(req, needs(classes, resources, policies), func(old, now *v1alpha1.ProtectedResource, in policy.Input) admission.Verdict {
			if old != nil && equality.Semantic.DeepEqual(old.Spec, now.Spec) {
				return admission.Verdict{}
			}
			return admission.ProtectedResource(old, now, in, h.Now())
		})
	case "ResourceClass":
		if deleted {
			return change(req, needs(policies, resources), func(old, _ *v1alpha1.ResourceClass, in policy.Input) admission.Verdict {
				return admission.DeleteResourceClass(old, in)
			})
		}
		return bounded(req, needs(classes), admission.ResourceClass, admission.OrganizationClass)
	case "SubjectClass":
		if deleted {
			return change(req, needs(policies, workloads), func(old, _ *v1alpha1.SubjectClass, in policy.Input) admission.Verdict {
				return admission.DeleteSubjectClass(old, in)
			})
		}
		return change(req, needs(classes), func(old, now *v1alpha1.SubjectClass, in policy.Input) admission.Verdict {
			return admission.SubjectClass(old, now, in)
		})
	case "ApprovalPolicy":
		if deleted {
			return nil, nil
		}
		return bounded(req, 0, func(old, now *v1alpha1.ApprovalPolicy, _ policy.Input) admission.Verdict {
			return admission.ApprovalPolicy(old, now)
		}, admission.OrganizationPolicy)
	case "Organization":
		if deleted {
			return nil, nil
		}
		return bounded(req, 0, func(_, _ *v1alpha1.Organization, _ policy.Input) admission.Verdict { return admission.Verdict{} },
			func(_, now *v1alpha1.Organization, all *organization.Index) admission.Verdict {
				return admission.Organization(now, all)
			})
	case "ExternalWorkload":
		if deleted {
			return nil, nil
		}
		return change(req, needs(classes, workloads), func(old, now *v1alpha1.ExternalWorkload, in policy.Input) admission.Verdict {
			if old != nil && equality.Semantic.DeepEqual(old.Spec, now.Spec) {
				return admission.Verdict{}
			}
			return admission.ExternalWorkload(old, now, in)
		})
	}
	return nil, nil
}

// change decodes the objects of a request for a rule. An object that is being deleted is not reviewed, because its
// finalizers have to be removable.
func change[T any](req *ctrladmission.Request, needs need, judge func(old, now *T, in policy.Input) admission.Verdict) (*rule, error) {
	old, err := decode[T](req.OldObject.Raw)
	if err != nil {
		return nil, err
	}
	now, err := decode[T](req.Object.Raw)
	if err != nil {
		return nil, err
	}
	if now != nil && deleting(now) {
		return nil, nil
	}
	if req.Operation == admissionv1.Delete && (old == nil || deleting(old)) {
		return nil, nil
	}
	if req.Operation != admissionv1.Delete && now == nil {
		return nil, fmt.Errorf("the review has no object")
	}
	return &rule{needs: needs, judge: func(in policy.Input) admission.Verdict { return judge(old, now, in) }}, nil
}

// bounded is like change, for an object that is reviewed against the organizations, too.
func bounded[T any](
	req *ctrladmission.Request, needs need,
	judge func(old, now *T, in policy.Input) admission.Verdict, bounds func(old, now *T, all *organization.Index) admission.Verdict,
) (*rule, error) {
	r, err := change(req, needs, judge)
	if r == nil || err != nil {
		return r, err
	}
	old, err := decode[T](req.OldObject.Raw)
	if err != nil {
		return nil, err
	}
	now, err := decode[T](req.Object.Raw)
	if err != nil {
		return nil, err
	}
	r.bounds = func(all *organization.Index) admission.Verdict { return bounds(old, now, all) }
	return r, nil
}

func deleting(o any) bool {
	m, ok := o.(client.Object)
	return ok && m.GetDeletionTimestamp() != nil
}

func decode[T any](raw []byte) (*T, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	out := new(T)
	if err := json.Unmarshal(raw, out); err != nil {
		return nil, fmt.Errorf("the object of the review cannot be read: %w", err)
	}
	return out, nil
}

// clip cuts a warning to the length that API servers pass on.
func clip(s string) string {
	if len(s) <= maxWarning {
		return s
	}
	return strings.ToValidUTF8(s[:maxWarning-3], "") + "..."
}
