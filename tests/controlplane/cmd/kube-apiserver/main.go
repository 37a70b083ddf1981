// Command kube-apiserver runs the unmodified Kubernetes API server of the version pinned in go.mod.
package main

import (
	"os"
	_ "time/tzdata" // CronJob validation needs time zones where the machine has none

	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

func main() { os.Exit(cli.Run(app.NewAPIServerCommand())) }
