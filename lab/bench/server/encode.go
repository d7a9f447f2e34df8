package server

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	jsonserializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"
)

const (
	mediaJSON     = "application/json"
	mediaProtobuf = "application/vnd.kubernetes.protobuf"
)

var (
	protobufObject = protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)
	protobufRaw    = protobuf.NewRawSerializer(scheme.Scheme, scheme.Scheme)
	jsonObject     = jsonserializer.NewSerializerWithOptions(jsonserializer.DefaultMetaFactory, scheme.Scheme, scheme.Scheme, jsonserializer.SerializerOptions{})
)

// format is one of the two encodings.
type format int

const (
	asProtobuf format = iota
	asJSON
	formats
)

func (f format) mediaType() string {
	if f == asProtobuf {
		return mediaProtobuf
	}
	return mediaJSON
}

// encode encodes an object with its kind, as it stands in an answer of its own.
func (f format) encode(obj runtime.Object) ([]byte, error) {
	var e runtime.Encoder = jsonObject
	if f == asProtobuf {
		e = protobufObject
	}
	var b bytes.Buffer
	if err := e.Encode(obj, &b); err != nil {
		return nil, fmt.Errorf("encode %T: %w", obj, err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// frame encodes an event of a watch with an encoded object.
func (f format) frame(e event, object []byte) ([]byte, error) {
	if f == asJSON {
		return fmt.Appendf(nil, "{\"type\":%q,\"object\":%s}\n", eventNames[e], object), nil
	}
	var b bytes.Buffer
	if err := protobufRaw.Encode(&metav1.WatchEvent{Type: eventNames[e], Object: runtime.RawExtension{Raw: object}}, &b); err != nil {
		return nil, fmt.Errorf("encode watch event: %w", err)
	}
	return append(binary.BigEndian.AppendUint32(nil, uint32(b.Len())), b.Bytes()...), nil
}

// item encodes an object as it stands in a list.
func (f format) item(obj runtime.Object) ([]byte, error) {
	if f == asProtobuf {
		marshaler, ok := obj.(interface{ Marshal() ([]byte, error) })
		if !ok {
			return nil, fmt.Errorf("%T has no protobuf encoding", obj)
		}
		raw, err := marshaler.Marshal()
		if err != nil {
			return nil, fmt.Errorf("encode %T: %w", obj, err)
		}
		return appendField(nil, 2, raw), nil
	}
	// A list says once what its items are.
	obj = obj.DeepCopyObject()
	obj.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	return f.encode(obj)
}

// appendField appends a field of length-delimited type.
func appendField(dst []byte, number int, value []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(number)<<3|2)
	return append(binary.AppendUvarint(dst, uint64(len(value))), value...)
}

// namespaces are how many there are with pods.
const namespaces = 100

// encoder is everything there is to encoding pods or nodes.
type encoder struct {
	pods  bool
	name  string
	kind  string
	empty func() metav1.Object
	// frames and items are by kind of object: of pods podKind, of nodes 1 with GPUs.
	frames [formats][events][podKinds]*template
	items  [formats][podKinds]*template
}

func newPods() (*encoder, error) {
	r := &encoder{pods: true, name: "pods", kind: "Pod", empty: func() metav1.Object { return &corev1.Pod{} }}
	for k := range podKinds {
		p, err := pod(k)
		if err != nil {
			return nil, err
		}
		if err := r.add(k, p, k.gpu(), slotNumber, slotVersion, slotNode, slotNamespace, slotUID, slotContainer, slotAddress); err != nil {
			return nil, err
		}
	}
	return r, nil
}

func newNodes() (*encoder, error) {
	r := &encoder{name: "nodes", kind: "Node", empty: func() metav1.Object { return &corev1.Node{} }}
	for k, gpu := range []bool{false, true} {
		n, err := node(gpu)
		if err != nil {
			return nil, err
		}
		if err := r.add(podKind(k), n, false, slotVersion, slotNode, slotUID); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// add encodes the templates of one kind of object.
func (r *encoder) add(k podKind, obj runtime.Object, gpus bool, must ...slot) error {
	hole := [formats]string{}
	if gpus {
		must = append(must, slotGPUs)
		hole = [formats]string{asProtobuf: gpuResource + "\x12\x03\x0a\x017", asJSON: strconv.Quote(gpuResource) + `:"7"`}
	}
	for f := range formats {
		object, err := f.encode(obj)
		if err != nil {
			return err
		}
		item, err := f.item(obj)
		if err != nil {
			return err
		}
		if r.items[f][k], err = newTemplate(item, hole[f], must...); err != nil {
			return err
		}
		for e := range bookmark {
			frame, err := f.frame(e, object)
			if err != nil {
				return err
			}
			if r.frames[f][e][k], err = newTemplate(frame, hole[f], must...); err != nil {
				return err
			}
		}
	}
	return nil
}

// kindOf is the index of the object's templates.
func (r *encoder) kindOf(o object) podKind {
	if r.pods {
		return o.kind
	}
	return podKind(o.gpus)
}

// values returns what goes into the template of object number i.
func (r *encoder) values(i int, o object) values {
	v := values{number: uint64(i), version: o.version, node: uint64(o.node), namespace: uint64(i / 7 % namespaces), gpus: uint64(o.gpus)}
	if !r.pods {
		v.node = uint64(i)
	}
	return v
}

// bookmark encodes a bookmark; end marks the end of initial events.
func (r *encoder) bookmark(f format, version uint64, end bool) ([]byte, error) {
	obj := r.empty()
	obj.SetResourceVersion(strconv.FormatUint(version, 10))
	if end {
		obj.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	}
	o := obj.(runtime.Object)
	o.GetObjectKind().SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(r.kind))
	encoded, err := f.encode(o)
	if err != nil {
		return nil, err
	}
	return f.frame(bookmark, encoded)
}
