// Command oracle answers, with kube-scheduler's own framework and default filters, on which nodes a pod may run.
// One JSON request per line on stdin, one JSON answer per line on stdout, in order; it ends with stdin.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	"k8s.io/dynamic-resource-allocation/deviceclass/extendedresourcecache"
	"k8s.io/dynamic-resource-allocation/resourceslice/tracker"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodevolumelimits"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
	"k8s.io/kubernetes/pkg/scheduler/util/assumecache"
)

// A request is a whole cluster and the pod to be judged.
type request struct {
	Nodes             []*v1.Node                         `json:"nodes"`
	Pods              []*v1.Pod                          `json:"pods"`
	Namespaces        []*v1.Namespace                    `json:"namespaces"`
	Volumes           []*v1.PersistentVolume             `json:"persistentVolumes"`
	Claims            []*v1.PersistentVolumeClaim        `json:"persistentVolumeClaims"`
	StorageClasses    []*storagev1.StorageClass          `json:"storageClasses"`
	CSINodes          []*storagev1.CSINode               `json:"csiNodes"`
	CSIDrivers        []*storagev1.CSIDriver             `json:"csiDrivers"`
	StorageCapacities []*storagev1.CSIStorageCapacity    `json:"csiStorageCapacities"`
	VolumeAttachments []*storagev1.VolumeAttachment      `json:"volumeAttachments"`
	DeviceClasses     []*resourcev1.DeviceClass          `json:"deviceClasses"`
	ResourceSlices    []*resourcev1.ResourceSlice        `json:"resourceSlices"`
	ResourceClaims    []*resourcev1.ResourceClaim        `json:"resourceClaims"`
	DeviceTaintRules  []*resourcev1beta2.DeviceTaintRule `json:"deviceTaintRules"`
	Pod               *v1.Pod                            `json:"pod"`
}

// An answer has, for each node that may not be used, the first plugin that refuses it and its reasons. A filter that
// fails on a node refuses it, too: kube-scheduler ends the attempt then, but may place the pod elsewhere in the next.
type answer struct {
	Refused map[string]refusal `json:"refused"`
	Error   string             `json:"error,omitempty"`
}

type refusal struct {
	Plugin  string   `json:"plugin"`
	Reasons []string `json:"reasons"`
}

func main() {
	klog.SetOutput(os.Stderr)
	metrics.Register()
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	out := bufio.NewWriter(os.Stdout)
	decoder, encoder := json.NewDecoder(in), json.NewEncoder(out)
	for decoder.More() {
		var asked request
		if err := decoder.Decode(&asked); err != nil {
			fmt.Fprintln(os.Stderr, "request:", err)
			os.Exit(1)
		}
		found, err := judge(&asked)
		if err != nil {
			found = &answer{Error: err.Error()}
		}
		if err := encoder.Encode(found); err != nil {
			os.Exit(1)
		}
		out.Flush()
	}
}

// stored returns the objects that plugins look up through informers which react to events.
func (r *request) stored() []runtime.Object {
	var objects []runtime.Object
	add(&objects, r.Volumes)
	add(&objects, r.Claims)
	add(&objects, r.StorageClasses)
	add(&objects, r.CSINodes)
	add(&objects, r.CSIDrivers)
	add(&objects, r.StorageCapacities)
	add(&objects, r.VolumeAttachments)
	add(&objects, r.DeviceClasses)
	add(&objects, r.ResourceSlices)
	add(&objects, r.ResourceClaims)
	add(&objects, r.DeviceTaintRules)
	return objects
}

func add[T runtime.Object](objects *[]runtime.Object, more []T) {
	for _, one := range more {
		*objects = append(*objects, one)
	}
}

func judge(asked *request) (*answer, error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	stored := asked.stored()
	objects := stored
	add(&objects, asked.Namespaces)
	add(&objects, asked.Nodes)
	client := fake.NewSimpleClientset(objects...)
	factory := informers.NewSharedInformerFactory(client, 0)
	snapshot := internalcache.NewSnapshot(asked.Pods, asked.Nodes)
	claims := assumecache.NewAssumeCache(
		klog.FromContext(ctx), factory.Resource().V1().ResourceClaims().Informer(), "ResourceClaim", "", nil,
	)
	slices, err := newTracker(ctx, client, factory, len(asked.DeviceTaintRules) > 0)
	if err != nil {
		return nil, err
	}
	devices := dynamicresources.NewDRAManager(ctx, claims, slices, factory)
	// As kube-scheduler's own event handlers do: which class has which extended resource.
	classes, err := factory.Resource().V1().DeviceClasses().Informer().AddEventHandler(
		devices.DeviceClassResolver().(*extendedresourcecache.ExtendedResourceCache),
	)
	if err != nil {
		return nil, err
	}
	framework, err := newFramework(ctx, client, factory, snapshot, devices)
	if err != nil {
		return nil, err
	}
	if len(stored) > 0 {
		factory.Start(ctx.Done())
		factory.WaitForCacheSync(ctx.Done())
		// An informer has synced before its handlers were called: what claims have allocated would be free.
		cache.WaitForCacheSync(ctx.Done(), claims.AddEventHandler(cache.ResourceEventHandlerFuncs{}).HasSynced)
		cache.WaitForCacheSync(ctx.Done(), slices.HasSynced, classes.HasSynced)
	} else {
		// Nothing reacts to the events of these: the stores are enough, and starting takes a tenth of a second.
		for _, one := range asked.Namespaces {
			if err := factory.Core().V1().Namespaces().Informer().GetStore().Add(one); err != nil {
				return nil, err
			}
		}
	}
	return filter(ctx, framework, snapshot, asked)
}

func newFramework(
	ctx context.Context, client *fake.Clientset, factory informers.SharedInformerFactory, snapshot *internalcache.Snapshot,
	devices *dynamicresources.DefaultDRAManager,
) (framework.Framework, error) {
	configuration, err := latest.Default()
	if err != nil {
		return nil, err
	}
	return frameworkruntime.NewFramework(ctx, plugins.NewInTreeRegistry(), &configuration.Profiles[0],
		frameworkruntime.WithClientSet(client),
		frameworkruntime.WithInformerFactory(factory),
		frameworkruntime.WithSnapshotSharedLister(snapshot),
		frameworkruntime.WithSharedDRAManager(devices),
		frameworkruntime.WithSharedCSIManager(nodevolumelimits.NewCSIManager(factory.Storage().V1().CSINodes().Lister())),
		frameworkruntime.WithParallelism(1),
	)
}

func newTracker(
	ctx context.Context, client *fake.Clientset, factory informers.SharedInformerFactory, rules bool,
) (*tracker.Tracker, error) {
	options := tracker.Options{
		EnableDeviceTaintRules: rules, SliceInformer: factory.Resource().V1().ResourceSlices(), KubeClient: client,
	}
	if rules {
		options.TaintInformer = factory.Resource().V1beta2().DeviceTaintRules()
		options.ClassInformer = factory.Resource().V1().DeviceClasses()
	}
	return tracker.StartTracker(ctx, options)
}

func filter(
	ctx context.Context, framework framework.Framework, snapshot *internalcache.Snapshot, asked *request,
) (*answer, error) {
	state := cycleState()
	found := &answer{Refused: map[string]refusal{}}
	allowed, status, _ := framework.RunPreFilterPlugins(ctx, state, asked.Pod)
	if !status.IsSuccess() && !status.IsRejected() {
		return nil, status.AsError()
	}
	for _, node := range asked.Nodes {
		result := status
		if status.IsSuccess() {
			if allowed != nil && !allowed.AllNodes() && !allowed.NodeNames.Has(node.Name) {
				found.Refused[node.Name] = refusal{Plugin: "PreFilter", Reasons: []string{"not among its nodes"}}
				continue
			}
			info, err := snapshot.NodeInfos().Get(node.Name)
			if err != nil {
				return nil, err
			}
			result = framework.RunFilterPlugins(ctx, state, asked.Pod, info)
		}
		if result.IsSuccess() {
			continue
		}
		found.Refused[node.Name] = refusal{Plugin: result.Plugin(), Reasons: result.Reasons()}
	}
	return found, nil
}

func cycleState() fwk.CycleState { return framework.NewCycleState() }
