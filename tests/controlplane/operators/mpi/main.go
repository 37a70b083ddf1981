// Command mpi runs the MPI operator's controller, without the leader election and the health
// server of its own main function: that one listens on every address of the machine.
package main

import (
	"context"
	"flag"
	"os"
	"os/signal"
	"syscall"

	"github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	clientset "github.com/kubeflow/mpi-operator/pkg/client/clientset/versioned"
	mpiinformers "github.com/kubeflow/mpi-operator/pkg/client/informers/externalversions"
	"github.com/kubeflow/mpi-operator/pkg/controller"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	kubescheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	schedclientset "sigs.k8s.io/scheduler-plugins/pkg/generated/clientset/versioned"
	volcanoclient "volcano.sh/apis/pkg/client/clientset/versioned"
)

const workers = 2

func main() {
	kubeconfig := flag.String("kubeconfig", "", "path of the kubeconfig file")
	gangScheduler := flag.String("gang-scheduling", "volcano", "name of the gang scheduler; any but volcano means scheduler-plugins")
	flag.Parse()
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		klog.Fatal(err)
	}
	if err := v2beta1.AddToScheme(kubescheme.Scheme); err != nil {
		klog.Fatal(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, config, *gangScheduler); err != nil {
		klog.Fatal(err)
	}
}

func run(ctx context.Context, config *rest.Config, gangScheduler string) error {
	config.QPS, config.Burst = 100, 100
	kube := kubernetes.NewForConfigOrDie(config)
	jobs := clientset.NewForConfigOrDie(config)
	// The controller wants a client of either gang scheduler, and uses the named one's.
	var volcano volcanoclient.Interface
	var plugins schedclientset.Interface
	if gangScheduler == "volcano" {
		volcano = volcanoclient.NewForConfigOrDie(config)
	} else {
		plugins = schedclientset.NewForConfigOrDie(config)
	}
	objects := informers.NewSharedInformerFactory(kube, 0)
	mpiJobs := mpiinformers.NewSharedInformerFactory(jobs, 0)
	operator, err := controller.NewMPIJobController(
		kube, jobs, volcano, plugins,
		objects.Core().V1().ConfigMaps(),
		objects.Core().V1().Secrets(),
		objects.Core().V1().Services(),
		objects.Batch().V1().Jobs(),
		objects.Core().V1().Pods(),
		objects.Scheduling().V1().PriorityClasses(),
		mpiJobs.Kubeflow().V2beta1().MPIJobs(),
		"", gangScheduler,
	)
	if err != nil {
		return err
	}
	objects.Start(ctx.Done())
	mpiJobs.Start(ctx.Done())
	if operator.PodGroupCtrl != nil {
		operator.PodGroupCtrl.StartInformerFactory(ctx.Done())
	}
	return operator.Run(workers, ctx.Done())
}
