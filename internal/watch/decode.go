package watch

import (
	"bytes"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// fate is what is found out about an object.
type fate int

const (
	passedOver fate = iota // it cannot count, and was not decoded
	uncounted              // it was decoded, and does not count
	worthKeeping
)

// record makes a record of an object, if it counts. It needs none to know that one
// without evidence does not. Of an object that cannot be decoded it returns what can be
// read of its identity.
func (s *stream[R]) record(object []byte) (r R, id identity, f fate, err error) {
	if s.json != nil {
		return s.decodeJSON(object, nil)
	}
	message, err := s.unwrap(object, "")
	if err != nil {
		return r, id, f, err
	}
	return s.decodeMessage(message, &s.scratch)
}

// unwrap takes an object of this kind, or of a list of it, out of its envelope.
func (k *kind[R]) unwrap(object []byte, suffix string) (message []byte, err error) {
	name, message, err := readObject(object)
	if base, ok := bytes.CutSuffix(name, []byte(suffix)); err == nil && (!ok || string(base) != k.name) {
		err = fmt.Errorf("%w: the API server sent a %s among %s", errMalformed, name, k.resource)
	}
	return message, err
}

// decodeMessage makes a record of an object's bytes, if it counts. What was cut is
// left in scratch.
func (k *kind[R]) decodeMessage(message []byte, scratch *[]byte) (r R, id identity, f fate, err error) {
	if id, err = readIdentity(message); err != nil {
		return r, id, f, undecodable(err)
	}
	if k.evidence != nil {
		if found, err := k.evidence.inObject(message); err != nil || !found {
			return r, id, passedOver, undecodable(err)
		}
	}
	cut, err := k.shape.cut((*scratch)[:0], message)
	if err == nil {
		*scratch = cut
		r, err = k.decode(cut)
	}
	if err != nil {
		return r, id, f, undecodable(err)
	}
	return r, id, k.fateOf(r), nil
}

// decodeJSON does the same for a server that has no protobuf. Objects in lists do not
// say what they are: then gvk does.
func (k *kind[R]) decodeJSON(object []byte, gvk *schema.GroupVersionKind) (r R, id identity, f fate, err error) {
	obj, _, err := scheme.Codecs.UniversalDeserializer().Decode(object, gvk, nil)
	switch {
	case err == nil:
	case runtime.IsNotRegisteredError(err) || runtime.IsMissingKind(err) || runtime.IsMissingVersion(err):
		return r, id, f, err
	default:
		return r, identityInJSON(object), f, undecodable(err)
	}
	if r, err = k.trim(obj); err != nil {
		return r, id, f, err
	}
	return r, identityOf(obj), k.fateOf(r), nil
}

func (k *kind[R]) fateOf(r R) fate {
	if k.counts == nil || k.counts(r) {
		return worthKeeping
	}
	return uncounted
}

// decodeFully decodes an object as any client does.
func decodeFully(object []byte) (runtime.Object, error) {
	return runtime.Decode(scheme.Codecs.UniversalDeserializer(), object)
}

func identityOf(obj runtime.Object) (id identity) {
	if o, ok := obj.(metav1.Object); ok {
		id = identity{[]byte(o.GetNamespace()), []byte(o.GetName()), []byte(o.GetResourceVersion())}
	}
	return id
}
