//go:build tools

// Package tools names the command that this recipe builds.
package tools

import (
	_ "k8s.io/autoscaler/cluster-autoscaler"
)
