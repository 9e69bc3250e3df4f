// Command ocm-work-agent runs the work agent of Open Cluster Management, unchanged, without its leader election. The tests of the
// propagation engine for ManifestWorks run against it.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/openshift/library-go/pkg/controller/controllercmd"
	"github.com/openshift/library-go/pkg/operator/events"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ocmfeature "open-cluster-management.io/api/feature"
	"open-cluster-management.io/ocm/pkg/common/options"
	"open-cluster-management.io/ocm/pkg/features"
	"open-cluster-management.io/ocm/pkg/work/spoke"
)

func main() {
	klog.InitFlags(nil)
	common, work := options.NewAgentOptions(), spoke.NewWorkloadAgentOptions()
	common.HubQPS, common.HubBurst = 50, 100 // the defaults of the agent's own flags
	flag.StringVar(&common.SpokeClusterName, "cluster-name", "", "name of the member, which is the namespace of its ManifestWorks on the host")
	member := flag.String("member-kubeconfig", "", "file with the access to the member")
	flag.StringVar(&work.WorkloadSourceConfig, "host-kubeconfig", "", "file with the access to the host")
	flag.DurationVar(&work.StatusSyncInterval, "status-sync-interval", work.StatusSyncInterval, "interval at which the member's objects are reported")
	flag.DurationVar(&work.AppliedManifestWorkEvictionGracePeriod, "eviction-grace-period", work.AppliedManifestWorkEvictionGracePeriod,
		"how long an object stays in the member whose ManifestWork is not on the host; 876000h and more is for ever")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, common, work, *member); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, common *options.AgentOptions, work *spoke.WorkloadAgentOptions, member string) error {
	if err := features.SpokeMutableFeatureGate.Add(ocmfeature.DefaultSpokeWorkFeatureGates); err != nil {
		return fmt.Errorf("register the feature gates: %w", err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", member)
	if err != nil {
		return fmt.Errorf("read %s: %w", member, err)
	}
	config.QPS, config.Burst = common.CommonOpts.QPS, common.CommonOpts.Burst
	return spoke.NewWorkAgentConfig(common, work).RunWorkloadAgent(ctx, &controllercmd.ControllerContext{
		KubeConfig: config, EventRecorder: events.NewInMemoryRecorder("ocm-work-agent", clock.RealClock{}),
	})
}
