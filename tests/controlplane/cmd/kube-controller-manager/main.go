// Command kube-controller-manager runs the unmodified controllers of the version pinned in go.mod.
package main

import (
	"os"
	_ "time/tzdata" // CronJobs need time zones where the machine has none

	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app"
)

func main() { os.Exit(cli.Run(app.NewControllerManagerCommand())) }
