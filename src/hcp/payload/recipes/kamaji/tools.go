//go:build tools

// Package tools names the command that this recipe builds.
package tools

import (
	_ "github.com/clastix/kamaji"
)
