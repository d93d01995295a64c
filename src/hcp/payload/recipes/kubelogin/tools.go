//go:build tools

// Package tools names the commands that this recipe builds.
package tools

import (
	_ "github.com/int128/kubelogin"
)
