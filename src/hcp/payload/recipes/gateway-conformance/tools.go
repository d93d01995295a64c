//go:build tools

package suite

import (
	_ "sigs.k8s.io/gateway-api/conformance/echo-basic"
)
