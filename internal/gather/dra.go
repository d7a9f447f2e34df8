package gather

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

// draResources are what is read, as RBAC names them.
var draResources = []string{"deviceclasses", "resourceslices", "resourceclaims"}

// discoverTimeout bounds the question whether there is DRA.
const discoverTimeout = 10 * time.Second

// readDRA tells classes, slices and claims. All three are attempted whatever becomes
// of the first, so that all permissions that are missing are named at once.
func (r *Report) readDRA(ctx context.Context, client kubernetes.Interface, t teller) {
	if !r.discoverDRA(ctx, client.Discovery()) {
		return
	}
	api := client.ResourceV1()
	var errs [3]error
	r.Observed.Classes, errs[0] = list(ctx, draResources[0], "", metav1.ListOptions{}, api.DeviceClasses().List,
		func(l *resourcev1.DeviceClassList) { each(l.Items, t.deviceClass) })
	r.Observed.Slices, errs[1] = list(ctx, draResources[1], "", metav1.ListOptions{}, api.ResourceSlices().List,
		func(l *resourcev1.ResourceSliceList) { each(l.Items, t.resourceSlice) })
	r.Observed.Claims, errs[2] = list(ctx, draResources[2], "", metav1.ListOptions{}, api.ResourceClaims("").List,
		func(l *resourcev1.ResourceClaimList) { each(l.Items, t.resourceClaim) })
	r.concludeDRA(errs)
}

// discoverDRA asks whether the API server serves what is needed. That it could not be
// asked is not the same as no.
func (r *Report) discoverDRA(ctx context.Context, server discovery.DiscoveryInterfaceWithContext) (served bool) {
	version := resourcev1.SchemeGroupVersion.String()
	list, err := within(ctx, discoverTimeout, func(ctx context.Context) (*metav1.APIResourceList, error) {
		return server.ServerResourcesForGroupVersionWithContext(ctx, version)
	})
	switch {
	case apierrors.IsNotFound(err):
		r.DRA, r.DRAReason = count.DRAAbsent, otherVersions(ctx, server)
		return false
	case apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err):
		r.DRA, r.DRAReason = count.DRAForbidden, "the API server does not tell us what it serves"
		r.missing(fmt.Errorf("ask whether the API server serves %s: %w (ask for the role system:discovery)", version, err))
		return false
	case err != nil:
		r.DRA, r.DRAReason = count.DRAUnreachable, "the API server did not say whether it serves "+version
		r.missing(fmt.Errorf("ask whether the API server serves %s: %w", version, err))
		return false
	}
	for _, resource := range draResources {
		if !slices.ContainsFunc(list.APIResources, func(a metav1.APIResource) bool { return a.Name == resource }) {
			r.DRA, r.DRAReason = count.DRAAbsent, fmt.Sprintf("the API server serves %s without %s", version, resource)
			return false
		}
	}
	return true
}

// otherVersions says what is served in place of the version that is read here.
func otherVersions(ctx context.Context, server discovery.DiscoveryInterfaceWithContext) string {
	groups, err := within(ctx, discoverTimeout, server.ServerGroupsWithContext)
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

// concludeDRA says what the lists came to. A part of the three would give numbers
// that look right and are not.
func (r *Report) concludeDRA(errs [3]error) {
	var forbidden, failed []string
	for i, err := range errs {
		switch {
		case err == nil:
		case apierrors.IsForbidden(err):
			forbidden = append(forbidden, draResources[i])
		default:
			failed = append(failed, draResources[i])
		}
		r.missing(err)
	}
	switch {
	case len(failed) > 0:
		r.DRA, r.DRAReason = count.DRAUnreachable, fmt.Sprintf("%s of %s could not be read", strings.Join(failed, ", "), resourcev1.GroupName)
	case len(forbidden) > 0:
		r.DRA, r.DRAReason = count.DRAForbidden, fmt.Sprintf("no permission to list %s in %s", strings.Join(forbidden, ", "), resourcev1.GroupName)
	default:
		r.DRA = count.DRASynced
	}
}
