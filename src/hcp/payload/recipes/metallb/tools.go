//go:build tools

// Package tools names the commands that this recipe builds.
package tools

import (
	_ "go.universe.tf/metallb/controller"
	_ "go.universe.tf/metallb/speaker"
)
