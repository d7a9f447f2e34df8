// Package discover asks an API server for what is not there in every cluster: dynamic
// resource allocation (DRA).
package discover

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
)

// DRAResources are what DRA is made of, as RBAC names them, in order.
var DRAResources = []string{"deviceclasses", "resourceclaims", "resourceslices"}

// timeout bounds the questions together: a server that accepts connections and does not
// answer would otherwise be waited for until TCP gives up.
const timeout = 10 * time.Second

// DRA asks whether the API server serves all that devices of DRA are counted from. The
// state is syncing if it does: everything is still to be read. Otherwise the reason says
// why not, and is worded so that the same answer is the same text. That the server could
// not be asked, or refuses to tell, is not the same as no: the state is then
// unreachable or forbidden, and there is an error.
func DRA(ctx context.Context, server discovery.DiscoveryInterfaceWithContext) (state count.DRAState, reason string, err error) {
	version := resourcev1.SchemeGroupVersion.String()
	late := fmt.Errorf("the API server did not answer within %v", timeout)
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, late)
	defer cancel()
	list, err := server.ServerResourcesForGroupVersionWithContext(ctx, version)
	switch {
	case apierrors.IsNotFound(err):
		return count.DRAAbsent, otherVersions(ctx, server), nil
	case apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err):
		return count.DRAForbidden, "the API server does not tell us what it serves",
			fmt.Errorf("ask whether the API server serves %s: %w (ask for the role system:discovery)", version, err)
	case err != nil:
		if errors.Is(context.Cause(ctx), late) {
			err = late // which says more than what became of the request
		}
		return count.DRAUnreachable, "the API server did not say whether it serves " + version,
			fmt.Errorf("ask whether the API server serves %s: %w", version, err)
	}
	for _, resource := range DRAResources {
		if !slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == resource }) {
			return count.DRAAbsent, fmt.Sprintf("the API server serves %s without %s", version, resource), nil
		}
	}
	return count.DRASyncing, "", nil
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
