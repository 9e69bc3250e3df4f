// Package rbactest runs a program with only the role that deploy gives it, on a real API server, and compares what the program requested
// with what the role grants.
package rbactest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/acp-io/acp/deploy"
	"github.com/acp-io/acp/internal/testenv"
)

// Names are not those of the files, so that a name which a program or a manifest does not take as a parameter is found.
var Names = deploy.Names{Namespace: "access", KubeFedNamespace: "federation", Adapter: "fence", Portal: "desk", Collector: "meter"}

// Cluster is a host cluster in which ACP's accounts and roles are installed.
type Cluster struct {
	*testenv.Server
	Admin client.Client
	Core  kubernetes.Interface
}

// Start starts an API server with the kinds in the folders and with the roles of deploy/rbac/host, under the Names.
func Start(t testing.TB, crds []string, tokens map[string]string) *Cluster {
	t.Helper()
	server := testenv.Start(t, testenv.Options{CRDs: crds, Tokens: tokens, Audit: true})
	c := &Cluster{Server: server}
	var err error
	if c.Admin, err = client.New(server.Config, client.Options{}); err != nil {
		t.Fatal(err)
	}
	if c.Core, err = kubernetes.NewForConfig(server.Config); err != nil {
		t.Fatal(err)
	}
	for _, n := range []string{Names.Namespace, Names.KubeFedNamespace} {
		c.Create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: n}})
	}
	for _, a := range []string{Names.Adapter, Names.Portal, Names.Collector} {
		c.Create(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: Names.Namespace, Name: a}})
	}
	text, err := deploy.Render("rbac/host", Names)
	if err != nil {
		t.Fatal(err)
	}
	for doc := range strings.SplitSeq(text, "---\n") {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(doc), &u.Object); err != nil {
			t.Fatal(err)
		}
		if len(u.Object) > 0 {
			c.Create(t, u)
		}
	}
	return c
}

// Create creates an object as administrator.
func (c *Cluster) Create(t testing.TB, o client.Object) {
	t.Helper()
	if err := c.Admin.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
}

// Kubeconfig writes the kubeconfig of a service account in the programs' namespace, and returns its file.
func (c *Cluster) Kubeconfig(t testing.TB, account string) string {
	t.Helper()
	token, err := c.Core.CoreV1().ServiceAccounts(Names.Namespace).CreateToken(t.Context(), account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	k := clientcmdapi.NewConfig()
	k.Clusters["host"] = &clientcmdapi.Cluster{Server: c.Config.Host, CertificateAuthorityData: c.Config.CAData}
	k.AuthInfos["account"] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	k.Contexts["host"] = &clientcmdapi.Context{Cluster: "host", AuthInfo: "account"}
	k.CurrentContext = "host"
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*k, file); err != nil {
		t.Fatal(err)
	}
	return file
}

// Check fails for each request of the account that was forbidden, and for each verb that its roles grant and that was not used. Optional
// has the reason for each verb that is granted although a run need not use it (a retry after a conflict happens only sometimes), as
// "VERB GROUP/RESOURCE in NAMESPACE" (without the namespace for a ClusterRole); an entry that no role grants fails too. Refused has, in
// the same form, the reason why a refusal is part of normal work.
func (c *Cluster) Check(t testing.TB, account string, optional, refused map[string]string) {
	t.Helper()
	requests, err := c.Requests()
	if err != nil {
		t.Fatal(err)
	}
	user := "system:serviceaccount:" + Names.Namespace + ":" + account
	var own []testenv.Request
	for _, r := range requests {
		if r.User != user {
			continue
		}
		own = append(own, r)
		if used := (grant{r.Verb, r.Group, r.Resource + sub(r.Subresource), r.Namespace}); r.Code == http.StatusForbidden && refused[used.String()] == "" {
			t.Errorf("forbidden: %s %s/%s%s %s in namespace %q", r.Verb, r.Group, r.Resource, sub(r.Subresource), r.Name, r.Namespace)
		}
	}
	if len(own) == 0 {
		t.Fatalf("%s requested nothing", user)
	}
	grants, err := c.grants(t.Context(), account)
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range slices.Sorted(slices.Values(names(grants))) {
		if optional[g] == "" && !slices.ContainsFunc(own, grants[g].covers) {
			t.Errorf("%s is granted, and nothing uses it", g)
		}
	}
	for g := range optional {
		if _, ok := grants[g]; !ok {
			t.Errorf("%s is on the list, and no role grants it", g)
		}
	}
}

func names(of map[string]grant) []string {
	var out []string
	for n := range of {
		out = append(out, n)
	}
	return out
}

func sub(name string) string {
	if name == "" {
		return ""
	}
	return "/" + name
}

// grant is one verb for one resource.
type grant struct{ verb, group, resource, namespace string }

func (g grant) String() string {
	s := g.verb + " " + g.group + "/" + g.resource
	if g.namespace != "" {
		s += " in " + g.namespace
	}
	return s
}

func (g grant) covers(r testenv.Request) bool {
	return r.Verb == g.verb && r.Group == g.group && r.Resource+sub(r.Subresource) == g.resource && (g.namespace == "" || r.Namespace == g.namespace)
}

// grants returns what the account's roles grant, by the text of each.
func (c *Cluster) grants(ctx context.Context, account string) (map[string]grant, error) {
	out := map[string]grant{}
	add := func(namespace string, rules []rbacv1.PolicyRule) error {
		for _, r := range rules {
			if slices.Contains(r.Verbs, "*") || slices.Contains(r.Resources, "*") || slices.Contains(r.APIGroups, "*") {
				return errors.New("a role grants everything of a kind by *")
			}
			for _, verb := range r.Verbs {
				for _, group := range r.APIGroups {
					for _, resource := range r.Resources {
						g := grant{verb, group, resource, namespace}
						out[g.String()] = g
					}
				}
			}
		}
		return nil
	}
	mine := func(subjects []rbacv1.Subject) bool {
		return slices.ContainsFunc(subjects, func(s rbacv1.Subject) bool {
			return s.Kind == "ServiceAccount" && s.Namespace == Names.Namespace && s.Name == account
		})
	}
	r := c.Core.RbacV1()
	wide, err := r.ClusterRoleBindings().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, b := range wide.Items {
		if !mine(b.Subjects) {
			continue
		}
		role, err := r.ClusterRoles().Get(ctx, b.RoleRef.Name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		if err := add("", role.Rules); err != nil {
			return nil, fmt.Errorf("%s: %w", role.Name, err)
		}
	}
	narrow, err := r.RoleBindings("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, b := range narrow.Items {
		if !mine(b.Subjects) {
			continue
		}
		role, err := r.Roles(b.Namespace).Get(ctx, b.RoleRef.Name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		if err := add(b.Namespace, role.Rules); err != nil {
			return nil, fmt.Errorf("%s: %w", role.Name, err)
		}
	}
	return out, nil
}

// Lists returns the reasons for lists of the kinds that a program only watches: clients take the first objects from the watch, where the
// API server is new enough.
func Lists(resources ...string) map[string]string {
	out := map[string]string{}
	for _, r := range resources {
		out["list acp.io/"+r] = "an API server older than 1.34, or one that is configured to be, sends the first objects of a watch only to those who list them"
	}
	return out
}
