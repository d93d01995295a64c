//go:build tools

// Package tools names the commands that this recipe builds.
package tools

import (
	_ "k8s.io/kube-state-metrics/v2"
	_ "sigs.k8s.io/metrics-server/cmd/metrics-server"
)
