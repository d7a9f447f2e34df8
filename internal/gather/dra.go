package gather

import (
	"context"
	"fmt"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
	"github.com/gpu-summary/gpu-summary-controller/internal/discover"
)

// draResources are what is read, as RBAC names them.
var draResources = []string{"deviceclasses", "resourceslices", "resourceclaims"}

// readDRA tells classes, slices and claims. All three are attempted whatever becomes
// of the first, so that all permissions that are missing are named at once.
func (r *Report) readDRA(ctx context.Context, client kubernetes.Interface, t teller) {
	var err error
	r.DRA, r.DRAReason, err = discover.DRA(ctx, client.Discovery())
	r.missing(err)
	if r.DRA != count.DRASyncing {
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
