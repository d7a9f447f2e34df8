package integration

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
)

type roles struct{ cluster, own []rbacv1.PolicyRule }

// manifestRoles reads the rules that users are told to apply.
func manifestRoles(e *env) (r roles) {
	e.Helper()
	file, err := os.ReadFile("../../deploy/manifests/rbac.yaml")
	e.must(err)
	for docs := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(file))); ; {
		doc, err := docs.Read()
		if errors.Is(err, io.EOF) {
			return r
		}
		e.must(err)
		obj, _, err := scheme.Codecs.UniversalDeserializer().Decode(doc, nil, nil)
		e.must(err)
		switch role := obj.(type) {
		case *rbacv1.ClusterRole:
			r.cluster = role.Rules
		case *rbacv1.Role:
			if role.Namespace != "default" { // which is only for Events about nodes
				r.own = role.Rules
			}
		}
	}
}
