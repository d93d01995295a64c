//go:build tools

// Package tools names the commands that this recipe builds.
package tools

import (
	_ "github.com/kubernetes-csi/csi-test/v5/cmd/csi-sanity"
)
