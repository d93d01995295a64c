//go:build tools

// Package tools names the commands that this recipe builds.
package tools

import (
	_ "github.com/cloudnativelabs/kube-router/v2/cmd/kube-router"
)
