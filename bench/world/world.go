// Package world generates the objects and the questions of the measurements: any number of grants of applications on
// redis clusters. The same seed gives the same world.
package world

import (
	"fmt"
	"math/rand/v2"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/policy"
)

const (
	appHead   = "trnv1:rsc:trip-com:iam:sa:app/"
	redisHead = "trnv1:rsc:trip-com:redis:clusters:"
	// Action is the action of every question.
	Action = "redis:connect"
	// Port is the port of Action.
	Port = 6379
	// perResource is the average number of grants of a resource; appTeams times appsPerTeam is the number of
	// applications.
	perResource = 10
	appTeams    = 50
	appsPerTeam = 100
	redisTeams  = 100
)

// Now is the instant of every question.
var Now = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// Grant is one statement, in a form that every engine can express.
type Grant struct {
	Deny bool
	// App is the application, unless every application of AppTeam is meant.
	App     App
	AppTeam int // -1 if App is meant
	// Redis is the resource, unless every resource of RedisTeam, or every resource, is meant.
	Redis      Redis
	RedisTeam  int // -1 if Redis is meant
	EveryRedis bool
}

// App is an application: a member of a team.
type App struct{ Team, Number int }

// Redis is a resource of a team.
type Redis struct{ Team, Number int }

// Name returns the name of the subject.
func (a App) Name() string { return fmt.Sprintf("%steam-%d-%d", appHead, a.Team, a.Number) }

// Name returns the name of the resource.
func (r Redis) Name() string { return fmt.Sprintf("%steam-%d-%d", redisHead, r.Team, r.Number) }

// Question is one connection to the port of Action.
type Question struct {
	App          App
	Redis        Redis
	Subject      string
	Resource     string
	Port         uint16
	SubjectList  []string
	ResourceList []string
}

// World is a state of the objects.
type World struct {
	Grants    []Grant
	Resources []Redis
	Input     policy.Input
}

// New generates a world of n grants on n/10 resources, all in Enforce; 1 % of the grants are wildcards and 1 % denies.
// The subjects of a resource follow Zipf's law: some applications occur nearly everywhere.
func New(seed uint64, n int) World {
	r := rand.New(rand.NewPCG(seed, uint64(n)))
	zipf := rand.NewZipf(r, 1.1, 20, appTeams*appsPerTeam-1)
	var w World
	for i := range n / perResource {
		w.Resources = append(w.Resources, Redis{Team: i % redisTeams, Number: i / redisTeams})
	}
	app := func() App {
		rank := int(zipf.Uint64())
		return App{Team: rank % appTeams, Number: rank / appTeams}
	}
	type pair struct {
		App
		Redis
	}
	seen := map[pair]bool{}
	for len(w.Grants) < n {
		g := Grant{App: app(), AppTeam: -1, Redis: w.Resources[r.IntN(len(w.Resources))], RedisTeam: -1}
		switch r.IntN(100) {
		case 0:
			switch r.IntN(4) {
			case 0:
				g.EveryRedis = true
			case 1:
				g.RedisTeam = r.IntN(redisTeams)
			default:
				g.AppTeam = r.IntN(appTeams)
			}
		case 1:
			g.Deny = true
		}
		if key := (pair{g.App, g.Redis}); !seen[key] { // a duplicate would not be requested
			seen[key] = true
			w.Grants = append(w.Grants, g)
		}
	}
	w.Input = w.input()
	return w
}

// Apps returns all applications.
func Apps() []App {
	var out []App
	for t := range appTeams {
		for i := range appsPerTeam {
			out = append(out, App{t, i})
		}
	}
	return out
}

// input returns one policy for each resource, as the portal writes them, and one of an administrator.
func (w *World) input() policy.Input {
	in := policy.Input{
		ResourceClasses: []*v1alpha1.ResourceClass{{ObjectMeta: metav1.ObjectMeta{Name: "redis"}, Spec: v1alpha1.ResourceClassSpec{
			Pattern: redisHead + "*", LabelKey: "com.trip/redis-cluster", Actions: []v1alpha1.ClassAction{
				{Name: Action, Ports: []v1alpha1.Port{{Port: Port}}}, {Name: "redis:admin", Ports: []v1alpha1.Port{{Port: 16379}}}}}}},
		SubjectClasses: []*v1alpha1.SubjectClass{{ObjectMeta: metav1.ObjectMeta{Name: "application"}, Spec: v1alpha1.SubjectClassSpec{
			Pattern: appHead + "*", LabelKey: "com.trip/appid"}}},
	}
	byResource := map[Redis]*v1alpha1.AccessControlPolicy{}
	for _, r := range w.Resources {
		name := r.Name()
		p := &v1alpha1.AccessControlPolicy{ObjectMeta: metav1.ObjectMeta{Name: policy.PolicyNameFor(name)}}
		byResource[r] = p
		in.Policies = append(in.Policies, p)
		in.Resources = append(in.Resources, &v1alpha1.ProtectedResource{ObjectMeta: metav1.ObjectMeta{Name: policy.UnitID(name)},
			Spec: v1alpha1.ProtectedResourceSpec{Resource: v1alpha1.ResourceName(name), Mode: v1alpha1.ModeEnforce}})
	}
	admin := &v1alpha1.AccessControlPolicy{ObjectMeta: metav1.ObjectMeta{Name: "admin"}}
	in.Policies = append(in.Policies, admin)
	for _, a := range Apps() {
		in.KnownNames = append(in.KnownNames, a.Name())
	}
	for i, g := range w.Grants {
		p := byResource[g.Redis]
		st := v1alpha1.Statement{SID: fmt.Sprintf("t-%d-1", i), Effect: v1alpha1.EffectAllow, Actions: []v1alpha1.Action{Action},
			Subjects: []v1alpha1.Subject{v1alpha1.Subject(g.App.Name())}, Resources: []v1alpha1.ResourceName{v1alpha1.ResourceName(g.Redis.Name())}}
		if g.Deny {
			st.Effect = v1alpha1.EffectDeny
		}
		if g.AppTeam >= 0 {
			st.Subjects[0] = v1alpha1.Subject(fmt.Sprintf("%steam-%d-*", appHead, g.AppTeam))
		}
		switch {
		case g.EveryRedis:
			p, st.Resources[0] = admin, redisHead+"*"
		case g.RedisTeam >= 0:
			p, st.Resources[0] = admin, v1alpha1.ResourceName(fmt.Sprintf("%steam-%d-*", redisHead, g.RedisTeam))
		}
		p.Spec.Statements = append(p.Spec.Statements, st)
	}
	return in
}

// Questions returns n questions, half of which are about pairs that a grant names. Their strings share no memory with those
// of the grants, as in flows.
func (w *World) Questions(seed uint64, n int) []Question {
	r := rand.New(rand.NewPCG(seed, 7))
	zipf := rand.NewZipf(r, 1.1, 20, appTeams*appsPerTeam-1)
	out := make([]Question, n)
	for i := range out {
		rank := int(zipf.Uint64())
		q := Question{App: App{rank % appTeams, rank / appTeams}, Redis: w.Resources[r.IntN(len(w.Resources))], Port: Port}
		if r.IntN(2) == 0 {
			g := w.Grants[r.IntN(len(w.Grants))]
			q.App, q.Redis = g.App, g.Redis
		}
		q.Subject, q.Resource = q.App.Name(), q.Redis.Name()
		q.SubjectList, q.ResourceList = []string{q.Subject}, []string{q.Resource}
		out[i] = q
	}
	return out
}
