package watch

import (
	"context"
	"net/http"
	"sync"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
)

// pageSize is how many objects a list asks for at a time, and so how many are in
// memory at once as they were sent.
const pageSize = 500

// client lists and watches one resource as records of type R.
type client[R record] struct {
	*kind[R]
	rest      rest.Interface
	namespace string
	scope     func(*metav1.ListOptions)

	mu       sync.Mutex
	known    *known // nil if all are kept
	position position
}

func newClient[R record](k *kind[R], api rest.Interface, namespace string, scope func(*metav1.ListOptions)) *client[R] {
	c := &client[R]{kind: k, rest: api, namespace: namespace, scope: scope}
	if k.counts != nil {
		c.known = newKnown()
	}
	return c
}

// remember returns what has been handed on, or begins anew with nothing.
func (c *client[R]) remember(anew bool) *known {
	c.mu.Lock()
	defer c.mu.Unlock()
	if anew && c.known != nil {
		c.known = newKnown()
	}
	return c.known
}

func (c *client[R]) request(o *metav1.ListOptions) *rest.Request {
	var timeout time.Duration
	if o.TimeoutSeconds != nil {
		timeout = time.Duration(*o.TimeoutSeconds) * time.Second
	}
	return c.rest.Get().NamespaceIfScoped(c.namespace, c.namespace != "").Resource(c.resource).
		VersionedParams(o, scheme.ParameterCodec).Timeout(timeout)
}

// watch opens a stream. One that begins with everything there is begins with
// nothing known.
func (c *client[R]) watch(ctx context.Context, o metav1.ListOptions) (apiwatch.Interface, error) {
	c.scope(&o)
	o.Watch, o.ResourceVersion = true, c.position.of(o.ResourceVersion)
	body, err := c.request(&o).Stream(ctx)
	if err != nil {
		return nil, err
	}
	s := newStream(c.kind, body, c.remember(streams(o)), &c.position)
	s.initial = streams(o)
	return apiwatch.NewStreamWatcherWithLogger(klog.FromContext(ctx), s,
		apierrors.NewClientErrorReporter(http.StatusInternalServerError, http.MethodGet, "ClientWatchDecoding")), nil
}

func (c *client[R]) at(version string) string { return c.position.of(version) }

// list reads everything, a page at a time, for servers that do not stream it. The
// reflector would ask such a server for resourceVersion 0, or after a while for no
// page at all, and be sent a cluster in one piece; the newest state is what can be
// had in pages, and as good.
//
// A list at one exact version is client-go comparing, and changes nothing here.
func (c *client[R]) list(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	c.scope(&o)
	comparing := o.ResourceVersionMatch == metav1.ResourceVersionMatchExact
	if !comparing {
		o.ResourceVersion, o.ResourceVersionMatch = "", ""
	}
	o.Limit = pageSize
	known := c.remember(!comparing)
	if comparing {
		known = nil
	}
	out := &recordList{}
	for {
		result := c.request(&o).Do(ctx)
		if err := result.Error(); err != nil {
			return nil, err
		}
		body, err := result.Raw()
		if err != nil {
			return nil, err
		}
		page, err := c.readPage(body, known, out)
		if err != nil {
			return nil, err
		}
		out.ResourceVersion = page.ResourceVersion
		if page.Continue == "" {
			if !comparing {
				c.position.pass(out.ResourceVersion)
			}
			return out, nil
		}
		o.Continue, o.ResourceVersion, o.ResourceVersionMatch = page.Continue, "", ""
	}
}

// readPage appends the records of a page to out.
func (c *client[R]) readPage(body []byte, known *known, out *recordList) (page metav1.ListMeta, err error) {
	if len(body) > 0 && body[0] == '{' {
		return c.readJSON(body, known, out)
	}
	message, err := c.open(body, "List")
	if err != nil {
		return page, err
	}
	var scratch []byte
	err = each(message, func(number protowire.Number, value []byte) error {
		switch number {
		case 1:
			return page.Unmarshal(value)
		case 2:
			r, id, counts, err := c.decodeMessage(value, &scratch)
			if err != nil {
				return err
			}
			c.take(r, id, counts, known, out)
		}
		return nil
	})
	return page, err
}

func (c *client[R]) readJSON(body []byte, known *known, out *recordList) (page metav1.ListMeta, err error) {
	list, err := decodeFully(body)
	if err != nil {
		return page, err
	}
	of, err := meta.ListAccessor(list)
	if err != nil {
		return page, err
	}
	err = meta.EachListItem(list, func(obj runtime.Object) error {
		r, err := c.trim(obj)
		if err == nil {
			c.take(r, identityOf(obj), c.keeps(r), known, out)
		}
		return err
	})
	return metav1.ListMeta{ResourceVersion: of.GetResourceVersion(), Continue: of.GetContinue()}, err
}

func (c *client[R]) take(r R, id identity, counts bool, known *known, out *recordList) {
	if !counts {
		return
	}
	out.Items = append(out.Items, r)
	if known != nil {
		known.add(id)
	}
}
