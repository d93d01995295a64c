//go:build tools

// Package tools names the commands that this recipe builds.
package tools

import (
	_ "sigs.k8s.io/cluster-api"
)
