package watch

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
)

// discoverTimeout bounds the question: a server that accepts connections and does
// not answer would otherwise be waited for until TCP gives up.
const discoverTimeout = 10 * time.Second

// discoverDRA asks whether the API server serves what is needed. The answer is
// syncing if it does. That it could not be asked is not the same as no, and the
// reasons are worded so that the same answer is the same text.
func discoverDRA(ctx context.Context, client kubernetes.Interface) (count.DRAState, string) {
	ctx, cancel := context.WithTimeout(ctx, discoverTimeout)
	defer cancel()
	server := client.Discovery()
	list, err := server.ServerResourcesForGroupVersionWithContext(ctx, resourcev1.SchemeGroupVersion.String())
	switch {
	case apierrors.IsNotFound(err):
		return count.DRAAbsent, otherVersions(ctx, server)
	case apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err):
		return count.DRAForbidden, "the API server does not tell us what it serves"
	case err != nil:
		return count.DRAUnreachable, fmt.Sprintf("the API server did not say whether it serves %s", resourcev1.SchemeGroupVersion)
	}
	for _, resource := range draResources {
		if !slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == resource }) {
			return count.DRAAbsent, fmt.Sprintf("the API server serves %s without %s", resourcev1.SchemeGroupVersion, resource)
		}
	}
	return count.DRASyncing, ""
}

// otherVersions says what is served in place of the version that is used here.
// Versions before it are not counted: they differ in where things stand.
func otherVersions(ctx context.Context, server discovery.DiscoveryInterfaceWithContext) string {
	groups, err := server.ServerGroupsWithContext(ctx)
	if err != nil {
		return fmt.Sprintf("the API server does not serve %s", resourcev1.SchemeGroupVersion)
	}
	for _, group := range groups.Groups {
		if group.Name != resourcev1.GroupName {
			continue
		}
		var versions []string
		for _, v := range group.Versions {
			versions = append(versions, v.Version)
		}
		slices.Sort(versions)
		return fmt.Sprintf("the API server serves %s in version %s, not in v1", group.Name, strings.Join(versions, ", "))
	}
	return fmt.Sprintf("the API server does not serve %s", resourcev1.GroupName)
}
