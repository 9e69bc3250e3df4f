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
		Short: "Show and control the waves in which Enforce reaches the members",
		Long: `If the class of a resource has waves (spec.rollout), a change to Enforce reaches the members in waves. These commands show how far
it has come, and instruct the adapter. They work with the host cluster, without the portal, and need the right to patch
ProtectedResources there; the portal has the same actions for the owners of a resource and the security team.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	r := &rolloutFlags{streams: s}
	status := &cobra.Command{
		Use:   "status [PROTECTEDRESOURCE]",
		Short: "List the rollouts that are in progress, or show one",
		Long: `The argument is the name of a ProtectedResource or of its resource. Without it, all rollouts that are in progress are listed.

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
		{waves.RollBack, "Return the members of the rollout to Audit at once, and halt it"},
	} {
		c := &cobra.Command{
			Use:   string(a.action) + " PROTECTEDRESOURCE --reason REASON",
			Short: a.short,
			Args:  oneArgument("the name of the ProtectedResource"),
			RunE:  func(cmd *cobra.Command, args []string) error { return r.instruct(cmd.Context(), a.action, args[0]) },
		}
		hostClusterFlags(c, &r.kubeconfig, &r.context)
		c.Flags().StringVar(&r.reason, "reason", "", "`TEXT` with the reason, for everybody who sees the rollout")
		cmd.AddCommand(c)
	}
	return cmd
}

var protectedResources = v1alpha1.GroupVersion.WithResource("protectedresources")

// find returns the ProtectedResources with a name, their own or of their resource; all for "".
func (r *rolloutFlags) find(ctx context.Context, client dynamic.Interface, name string) ([]*v1alpha1.ProtectedResource, error) {
	var out []*v1alpha1.ProtectedResource
	for next := ""; ; {
		found, err := client.Resource(protectedResources).List(ctx, metav1.ListOptions{Limit: 500, Continue: next})
		if err != nil {
			return nil, invalid(fmt.Errorf("list the ProtectedResources: %w", err))
		}
		for i := range found.Items {
			o := &v1alpha1.ProtectedResource{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(found.Items[i].Object, o); err != nil {
				return nil, invalid(fmt.Errorf("read ProtectedResource %s: %w", found.Items[i].GetName(), err))
			}
			if name == "" || o.Name == name || string(o.Spec.Resource) == name {
				out = append(out, o)
			}
		}
		if next = found.GetContinue(); next == "" {
			break
		}
	}
	if name != "" && len(out) == 0 {
		return nil, invalid(fmt.Errorf("no ProtectedResource %q", name))
	}
	slices.SortFunc(out, func(a, b *v1alpha1.ProtectedResource) int { return cmp.Compare(a.Name, b.Name) })
	return out, nil
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
	for _, o := range list {
		s := o.Status.Rollout
		if s == nil || s.Progress == nil {
			if name != "" {
				rows = append(rows, []string{o.Name, string(o.Spec.Resource), "-", "0", "none in progress", "", ""})
			}
			continue
		}
		rows = append(rows, r.row(o, s.Progress))
		halted = halted || s.Progress.Halt != nil
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

func (r *rolloutFlags) row(o *v1alpha1.ProtectedResource, p *v1alpha1.RolloutProgress) []string {
	wave := strconv.Itoa(int(p.Wave)) + "/" + strconv.Itoa(int(p.Waves))
	if p.Name != "" {
		wave += " " + p.Name
	}
	state, since, text := "waiting", p.BegunAt, "not every member of the wave enforces yet"
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
	return []string{o.Name, string(o.Spec.Resource), wave, strconv.Itoa(int(p.Waiting)), state, age, text}
}

// instruct writes an instruction to a ProtectedResource.
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
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{v1alpha1.AnnotationRollout: i.String()}}})
	if err != nil {
		return invalid(err)
	}
	given := 0
	for _, o := range list {
		if s := o.Status.Rollout; s == nil || s.Progress == nil {
			continue
		}
		if _, err := client.Resource(protectedResources).Patch(ctx, o.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			return invalid(fmt.Errorf("patch ProtectedResource %s: %w", o.Name, err))
		}
		given++
		fmt.Fprintf(r.streams.Out, "%s: the adapter is instructed: %s\n", o.Name, action)
	}
	if given == 0 {
		fmt.Fprintf(r.streams.Err, "no rollout of %s is in progress\n", name)
		return errFindings
	}
	return nil
}
