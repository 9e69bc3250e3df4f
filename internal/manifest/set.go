package manifest

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/policy"
)

// KubeFedCluster is the kind of KubeFed's member clusters. They are read in addition to ACP's kinds, because placements
// select them by their labels.
const KubeFedCluster = "KubeFedCluster"

const kubefedGroup = "core.kubefed.io"

// Key identifies an object.
type Key struct{ Kind, Name string }

func (k Key) String() string { return k.Kind + "/" + k.Name }

// Member is a member cluster with the labels that placements select.
type Member struct {
	Name                string
	Labels, Annotations map[string]string
}

// Set is everything that was read.
type Set struct {
	Input policy.Input
	// Approvals are the approval policies. They do not affect decisions and are read to be validated.
	Approvals []*v1alpha1.ApprovalPolicy
	// Organizations limit classes and approval policies. They do not affect decisions.
	Organizations []*v1alpha1.Organization
	Members       []Member
	// Reports are the reports of the adapter about the members.
	Reports []*v1alpha1.MemberCluster
	// Issues are sorted by position.
	Issues []Issue

	positions map[Key]Position
	// statements has the lines of the statements, by policy and sid.
	statements map[policy.Ref]Position
}

func newSet() *Set {
	return &Set{positions: map[Key]Position{}, statements: map[policy.Ref]Position{}}
}

// Failed reports whether there is an issue that is not a warning, so that the set must not be used.
func (s *Set) Failed() bool {
	for _, i := range s.Issues {
		if !i.Warning {
			return true
		}
	}
	return false
}

// Empty reports whether no object was read.
func (s *Set) Empty() bool { return len(s.positions) == 0 }

// PositionOf returns where an object was read.
func (s *Set) PositionOf(k Key) Position { return s.positions[k] }

// PositionOfStatement returns where a statement was read, or the position of its policy if the line is unknown.
func (s *Set) PositionOfStatement(r policy.Ref) Position {
	if p, ok := s.statements[r]; ok {
		return p
	}
	return s.positions[Key{Kind: "AccessControlPolicy", Name: r.Policy}]
}

func (s *Set) report(p Position, k Key, warning bool, m message.Message) {
	i := Issue{Position: p, Message: m, Warning: warning}
	if k.Kind != "" {
		i.Object = k.String()
	}
	s.Issues = append(s.Issues, i)
}

// add adds an object that its schema admits. It returns false if it reported an issue instead.
func (s *Set) add(u *unstructured.Unstructured, at Position) bool {
	k := Key{Kind: u.GetKind(), Name: u.GetName()}
	if before, ok := s.positions[k]; ok {
		s.report(at, k, false, message.ManifestNameTwice(before.String()))
		return false
	}
	var err error
	switch k.Kind {
	case "AccessControlPolicy":
		s.Input.Policies, err = appended(s.Input.Policies, u)
	case "ResourceClass":
		s.Input.ResourceClasses, err = appended(s.Input.ResourceClasses, u)
	case "SubjectClass":
		s.Input.SubjectClasses, err = appended(s.Input.SubjectClasses, u)
	case "ProtectedResource":
		s.Input.Resources, err = appended(s.Input.Resources, u)
	case "ExternalWorkload":
		s.Input.Workloads, err = appended(s.Input.Workloads, u)
	case "ApprovalPolicy":
		s.Approvals, err = appended(s.Approvals, u)
	case "Organization":
		s.Organizations, err = appended(s.Organizations, u)
	case "MemberCluster":
		s.Reports, err = appended(s.Reports, u)
	case KubeFedCluster:
		s.Members = append(s.Members, Member{Name: k.Name, Labels: u.GetLabels(), Annotations: u.GetAnnotations()})
	}
	if err != nil {
		s.report(at, k, false, message.Of(err))
		return false
	}
	s.positions[k] = at
	return true
}

func appended[T any](list []*T, u *unstructured.Unstructured) ([]*T, error) {
	out := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, out); err != nil {
		return list, fmt.Errorf("read the object: %w", err)
	}
	return append(list, out), nil
}

// Over returns a set with the objects of s and top, in which an object of top replaces one of s with the same kind and
// name.
func (s *Set) Over(top *Set) *Set {
	out := newSet()
	out.Issues = append(append(out.Issues, s.Issues...), top.Issues...)
	out.Input = policy.Input{
		Policies:        over("AccessControlPolicy", s.Input.Policies, top.Input.Policies, top),
		ResourceClasses: over("ResourceClass", s.Input.ResourceClasses, top.Input.ResourceClasses, top),
		SubjectClasses:  over("SubjectClass", s.Input.SubjectClasses, top.Input.SubjectClasses, top),
		Resources:       over("ProtectedResource", s.Input.Resources, top.Input.Resources, top),
		Workloads:       over("ExternalWorkload", s.Input.Workloads, top.Input.Workloads, top),
	}
	out.Approvals = over("ApprovalPolicy", s.Approvals, top.Approvals, top)
	out.Organizations = over("Organization", s.Organizations, top.Organizations, top)
	for _, m := range s.Members {
		if _, ok := top.positions[Key{KubeFedCluster, m.Name}]; !ok {
			out.Members = append(out.Members, m)
		}
	}
	out.Members = append(out.Members, top.Members...)
	out.Reports = over("MemberCluster", s.Reports, top.Reports, top)
	for _, from := range []*Set{s, top} {
		for k, p := range from.positions {
			out.positions[k] = p
		}
		for r, p := range from.statements {
			out.statements[r] = p
		}
	}
	return out
}

func over[T interface{ GetName() string }](kind string, base, top []T, in *Set) []T {
	var out []T
	for _, o := range base {
		if _, replaced := in.positions[Key{kind, o.GetName()}]; !replaced {
			out = append(out, o)
		}
	}
	return append(out, top...)
}
