// Package suite runs the published tests of the Gateway API, with the images that the environment names.
package suite

import (
	"embed"
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/gateway-api/conformance"
)

// The published manifests with other images in them. IMAGES is `repository=image`, with commas between.
type manifests struct{ embed.FS }

func (m manifests) ReadFile(name string) ([]byte, error) {
	text, err := m.FS.ReadFile(name)
	for _, one := range strings.Split(os.Getenv("IMAGES"), ",") {
		if repository, image, found := strings.Cut(one, "="); found {
			pattern := regexp.MustCompile(`image: ` + regexp.QuoteMeta(repository) + `:\S+`)
			text = pattern.ReplaceAllLiteral(text, []byte("image: "+image))
		}
	}
	return text, err
}

func TestConformance(t *testing.T) {
	options := conformance.DefaultOptions(t)
	options.ManifestFS = []fs.FS{manifests{conformance.Manifests}}
	conformance.RunConformanceWithOptions(t, options)
}
