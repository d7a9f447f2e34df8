package watch

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
	stats    stats
}

func newClient[R record](k *kind[R], api rest.Interface, namespace string, scope func(*metav1.ListOptions)) *client[R] {
	c := &client[R]{kind: k, rest: api, namespace: namespace, scope: scope, stats: stats{measured: true}}
	if k.counts != nil {
		c.known = newKnown()
	}
	return c
}

// remember returns what has been handed on, or begins anew with nothing.
func (c *client[R]) remember(anew bool) *known {
	c.mu.Lock()
	defer c.mu.Unlock()
	if anew {
		c.stats.undecodable.anew()
	}
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
	s.initial, s.stats, s.open, s.logger = streams(o), &c.stats, c.stats.connect(), klog.FromContext(ctx)
	return apiwatch.NewStreamWatcherWithLogger(klog.FromContext(ctx), s,
		apierrors.NewClientErrorReporter(http.StatusInternalServerError, http.MethodGet, string(watchDecoding))), nil
}

func (c *client[R]) at(version string) string { return c.position.of(version) }

func (c *client[R]) behind(version string) bool { return c.position.ahead(version) }

func (c *client[R]) numbers() *stats { return &c.stats }

// list reads everything, a page at a time, for servers that do not stream it. The
// reflector would ask such a server for resourceVersion 0, or after a while for no
// page at all, and be sent a cluster in one piece; the newest state is what can be
// had in pages, and as good.
//
// A list at one exact version is client-go comparing, and changes nothing here.
func (c *client[R]) list(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	c.scope(&o)
	comparing := exact(o)
	if !comparing {
		o.ResourceVersion, o.ResourceVersionMatch = "", ""
	}
	o.Limit = pageSize
	to := taking{logger: klog.FromContext(ctx), known: c.remember(!comparing), stats: &c.stats, out: &recordList{}}
	if comparing {
		to.known, to.stats = nil, &stats{}
	}
	out := to.out
	for {
		result := c.request(&o).Do(ctx)
		if err := result.Error(); err != nil {
			return nil, err
		}
		body, err := result.Raw()
		if err != nil {
			return nil, err
		}
		page, err := c.readPage(body, to)
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

// exact reports whether a list is one that client-go compares with what was streamed.
func exact(o metav1.ListOptions) bool {
	return o.ResourceVersionMatch == metav1.ResourceVersionMatchExact
}

// taking is what becomes of the objects in a list.
type taking struct {
	logger klog.Logger
	known  *known // nil if nothing is to be remembered
	stats  *stats
	out    *recordList
}

// readPage takes the objects of a page.
func (c *client[R]) readPage(body []byte, to taking) (page metav1.ListMeta, err error) {
	if len(body) > 0 && body[0] == '{' {
		return c.readJSON(body, to)
	}
	message, err := c.unwrap(body, "List")
	if err != nil {
		return page, err
	}
	var scratch []byte
	err = each(message, func(number protowire.Number, value []byte) error {
		switch number {
		case 1:
			return page.Unmarshal(value)
		case 2:
			r, id, fate, err := c.decodeMessage(value, &scratch)
			return c.take(to, value, r, id, fate, err)
		}
		return nil
	})
	return page, err
}

// readJSON does so for a page in JSON. Objects are decoded one by one, so that one that
// cannot be does not cost the others.
func (c *client[R]) readJSON(body []byte, to taking) (page metav1.ListMeta, err error) {
	var list struct {
		metav1.TypeMeta `json:",inline"`
		metav1.ListMeta `json:"metadata"`
		Items           []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return page, fmt.Errorf("decode a list of %s: %w", c.resource, err)
	}
	if list.Kind != c.name+"List" {
		return page, fmt.Errorf("%w: the API server sent a %q for a list of %s", errMalformed, list.Kind, c.resource)
	}
	gvk := list.GroupVersionKind()
	gvk.Kind = c.name
	for _, item := range list.Items {
		r, id, fate, err := c.decodeJSON(item, &gvk)
		if err := c.take(to, item, r, id, fate, err); err != nil {
			return page, err
		}
	}
	return list.ListMeta, nil
}

// take hands an object on, or leaves it out. The error is what ends the list.
func (c *client[R]) take(to taking, object []byte, r R, id identity, f fate, err error) error {
	if isUndecodable(err) {
		to.stats.undecodable.met(to.logger, c.resource, id, object, err)
		return nil
	}
	if err != nil {
		return err
	}
	if f != passedOver {
		to.stats.decoded.Add(1)
	}
	if f != worthKeeping {
		to.stats.drop(len(object))
		return nil
	}
	to.stats.handed(len(object))
	to.out.Items = append(to.out.Items, r)
	if to.known != nil {
		to.known.add(id)
	}
	return nil
}
