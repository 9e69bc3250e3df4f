package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/waves"
)

// rolloutFlags are the flags of the commands about waves.
type rolloutFlags struct {
	streams             Streams
	kubeconfig, context string
	reason              string
}

func newRollout(s Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rollout",
		Short: "Show and control the waves in which changes reach the members",
		Long: `If a class has waves (spec.rollout), a change of a resource to Enforce, and a change of the class, reach the members in waves. These
commands show how far it has come, and instruct the adapter. They work with the host cluster, without the portal, and need the right to
patch ProtectedResources or ResourceClasses there. The portal has the same actions for resources, for their owners and the security team.`,
		Args: onlyCommands,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	r := &rolloutFlags{streams: s}
	status := &cobra.Command{
		Use:   "status [PROTECTEDRESOURCE | resourceclass/NAME]",
		Short: "List the rollouts that are in progress, or show one",
		Long: `The argument is the name of a ProtectedResource or of its resource, or of a class. Without it, all rollouts that are in progress are listed.

The exit code is 1 if a rollout is halted.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return r.status(cmd.Context(), args) },
	}
	hostClusterFlags(status, &r.kubeconfig, &r.context)
	cmd.AddCommand(status)
	for _, a := range []struct {
		action waves.Action
		short  string
	}{
		{waves.Pause, "Keep further waves from beginning"},
		{waves.Resume, "Continue after a halt; the soak time of the current wave begins again"},
		{waves.Skip, "Begin the next wave at once, whatever the current one waits for"},
		{waves.Finish, "Begin all waves at once"},
		{waves.RollBack, "Return the members of the rollout to Audit, or to the earlier rules of the class, at once, and halt it"},
	} {
		c := &cobra.Command{
			Use:   string(a.action) + " PROTECTEDRESOURCE|resourceclass/NAME --reason REASON",
			Short: a.short,
			Args:  oneArgument("the name of the ProtectedResource, or resourceclass/NAME"),
			RunE:  func(cmd *cobra.Command, args []string) error { return r.instruct(cmd.Context(), a.action, args[0]) },
		}
		hostClusterFlags(c, &r.kubeconfig, &r.context)
		c.Flags().StringVar(&r.reason, "reason", "", "`TEXT` with the reason, for everybody who sees the rollout")
		cmd.AddCommand(c)
	}
	return cmd
}

var (
	protectedResources = v1alpha1.GroupVersion.WithResource("protectedresources")
	resourceClasses    = v1alpha1.GroupVersion.WithResource("resourceclasses")
)

// classPrefix distinguishes the name of a ResourceClass from that of a ProtectedResource.
const classPrefix = "resourceclass/"

// rolloutTarget is an object whose change reaches the members in waves.
type rolloutTarget struct {
	kind     schema.GroupVersionResource
	name     string // of the object
	shown    string // its name with the prefix of its kind
	concerns string // the resource, or the pattern of the class
	progress *v1alpha1.RolloutProgress
	// instructedAt is the time of the last instruction that the adapter has carried out; nil if there is none.
	instructedAt *metav1.MicroTime
	// unseen reports whether the adapter has not begun the rollout.
	unseen bool
}

// find returns the objects with a name: ProtectedResources by their own name or that of their resource, and a ResourceClass by its name
// with the prefix; all of both kinds for "".
func (r *rolloutFlags) find(ctx context.Context, client dynamic.Interface, name string) ([]rolloutTarget, error) {
	var out []rolloutTarget
	class, isClass := strings.CutPrefix(name, classPrefix)
	if name == "" || !isClass {
		err := each(ctx, client, protectedResources, "ProtectedResource", func(o *v1alpha1.ProtectedResource) {
			if name != "" && o.Name != name && string(o.Spec.Resource) != name {
				return
			}
			t := rolloutTarget{kind: protectedResources, name: o.Name, shown: o.Name, concerns: string(o.Spec.Resource)}
			if s := o.Status.Rollout; s != nil {
				t.progress, t.instructedAt = s.Progress, s.InstructionAt
			}
			out = append(out, t)
		})
		if err != nil {
			return nil, err
		}
	}
	if name == "" || isClass {
		err := each(ctx, client, resourceClasses, "ResourceClass", func(c *v1alpha1.ResourceClass) {
			if name != "" && c.Name != class {
				return
			}
			t := rolloutTarget{kind: resourceClasses, name: c.Name, shown: classPrefix + c.Name, concerns: string(c.Spec.Pattern)}
			if c.RollsOut() {
				t.progress, t.unseen = c.Status.Rollout.Progress, c.Status.Rollout.Progress == nil
				t.instructedAt = c.Status.Rollout.InstructionAt
			}
			out = append(out, t)
		})
		if err != nil {
			return nil, err
		}
	}
	switch {
	case len(out) > 0 || name == "":
	case isClass:
		return nil, invalid(fmt.Errorf("no ResourceClass %q", class))
	default:
		return nil, invalid(fmt.Errorf("no ProtectedResource %q; a class is named %sNAME", name, classPrefix))
	}
	slices.SortStableFunc(out, func(a, b rolloutTarget) int { return cmp.Compare(a.shown, b.shown) })
	return out, nil
}

// each lists the objects of a kind in pages.
func each[T any](ctx context.Context, client dynamic.Interface, kind schema.GroupVersionResource, kindName string, do func(*T)) error {
	for next := ""; ; {
		found, err := client.Resource(kind).List(ctx, metav1.ListOptions{Limit: 500, Continue: next})
		if err != nil {
			return invalid(fmt.Errorf("list the objects of the kind %s: %w", kindName, err))
		}
		for i := range found.Items {
			o := new(T)
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(found.Items[i].Object, o); err != nil {
				return invalid(fmt.Errorf("read %s %s: %w", kindName, found.Items[i].GetName(), err))
			}
			do(o)
		}
		if next = found.GetContinue(); next == "" {
			return nil
		}
	}
}

func (r *rolloutFlags) status(ctx context.Context, args []string) error {
	name := ""
	if len(args) > 0 {
		name = args[0]
	}
	config, err := hostKubeconfig(r.kubeconfig, r.context)
	if err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return invalid(fmt.Errorf("the cluster's configuration cannot be used: %w", err))
	}
	list, err := r.find(ctx, client, name)
	if err != nil {
		return err
	}
	rows, halted := [][]string{{"NAME", "RESOURCE", "WAVE", "WAITING", "STATE", "SINCE", "MESSAGE"}}, false
	for i := range list {
		t := &list[i]
		switch {
		case t.progress != nil:
			rows = append(rows, r.row(t))
			halted = halted || t.progress.Halt != nil
		case t.unseen:
			rows = append(rows, []string{t.shown, t.concerns, "0", "all", "waiting", "", "the adapter has not begun the rollout"})
		case name != "":
			rows = append(rows, []string{t.shown, t.concerns, "-", "0", "none in progress", "", ""})
		}
	}
	if len(rows) == 1 {
		fmt.Fprintln(r.streams.Out, "no rollout is in progress")
		return nil
	}
	if err := table(r.streams.Out, rows); err != nil {
		return err
	}
	if halted {
		return errFindings
	}
	return nil
}

func (r *rolloutFlags) row(t *rolloutTarget) []string {
	p := t.progress
	wave := strconv.Itoa(int(p.Wave)) + "/" + strconv.Itoa(int(p.Waves))
	if p.Name != "" {
		wave += " " + p.Name
	}
	state, since, text := "waiting", p.BegunAt, "not every member of the wave has the change yet"
	switch {
	case p.Halt != nil:
		state, since, text = "halted: "+string(p.Halt.Reason), &p.Halt.At, p.Halt.Message
		if p.Halt.By != "" {
			text += " (by " + p.Halt.By + ")"
		}
	case p.EnforcedSince != nil:
		state, since, text = "soaking", p.EnforcedSince, ""
	}
	age := ""
	if since != nil {
		age = max(r.streams.Now().Sub(since.Time), 0).Truncate(time.Second).String()
	}
	return []string{t.shown, t.concerns, wave, strconv.Itoa(int(p.Waiting)), state, age, text}
}

// instruct writes an instruction to a ProtectedResource or a ResourceClass.
func (r *rolloutFlags) instruct(ctx context.Context, action waves.Action, name string) error {
	reason := strings.TrimSpace(r.reason)
	if reason == "" {
		return usage("why? Give --reason")
	}
	config, err := hostKubeconfig(r.kubeconfig, r.context)
	if err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return invalid(fmt.Errorf("the cluster's configuration cannot be used: %w", err))
	}
	core, err := kubernetes.NewForConfig(config)
	if err != nil {
		return invalid(fmt.Errorf("the cluster's configuration cannot be used: %w", err))
	}
	who, err := core.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return invalid(fmt.Errorf("ask the host cluster who you are: %w", err))
	}
	list, err := r.find(ctx, client, name)
	if err != nil {
		return err
	}
	i := waves.New(action, who.Status.UserInfo.Username, reason, r.streams.Now())
	if err := i.Validate(); err != nil {
		return usage("%v", err)
	}
	given := 0
	for n := range list {
		t := &list[n]
		if t.progress == nil {
			continue
		}
		later := i.LaterThan(t.instructedAt)
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{v1alpha1.AnnotationRollout: later.String()}}})
		if err != nil {
			return invalid(err)
		}
		if _, err := client.Resource(t.kind).Patch(ctx, t.name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			return invalid(fmt.Errorf("patch %s: %w", t.shown, err))
		}
		given++
		fmt.Fprintf(r.streams.Out, "%s: the adapter is instructed: %s\n", t.shown, action)
	}
	if given == 0 {
		fmt.Fprintf(r.streams.Err, "no rollout of %s is in progress\n", name)
		return errFindings
	}
	return nil
}
