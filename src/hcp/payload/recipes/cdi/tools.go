//go:build tools

// Package tools names the commands that this recipe builds.
package tools

import (
	_ "kubevirt.io/containerized-data-importer/cmd/cdi-apiserver"
	_ "kubevirt.io/containerized-data-importer/cmd/cdi-cloner"
	_ "kubevirt.io/containerized-data-importer/cmd/cdi-controller"
	_ "kubevirt.io/containerized-data-importer/cmd/cdi-importer"
	_ "kubevirt.io/containerized-data-importer/cmd/cdi-operator"
	_ "kubevirt.io/containerized-data-importer/cmd/cdi-uploadproxy"
	_ "kubevirt.io/containerized-data-importer/cmd/cdi-uploadserver"
	_ "kubevirt.io/containerized-data-importer/tools/cdi-containerimage-server"
	_ "kubevirt.io/containerized-data-importer/tools/cdi-image-size-detection"
	_ "kubevirt.io/containerized-data-importer/tools/cdi-source-update-poller"
	_ "kubevirt.io/containerized-data-importer/tools/manifest-generator"
)
