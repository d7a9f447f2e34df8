package gather

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/conversion"
	kubejson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/dynamic-resource-allocation/api/v1beta1"
)

const (
	// maxDepth bounds lists of lists.
	maxDepth   = 8
	listSuffix = "List"
)

// object tells the object in raw, which is JSON. of is the list it is an item of, if
// any: in a list of one kind items need not say what they are. An error is about an object of
// which nothing says it; with every other one all that can be done is done.
func (f *file) object(w *where, raw []byte, of metav1.TypeMeta) error {
	if len(raw) == 0 || raw[0] != '{' {
		f.broken(w, "", fmt.Errorf("want an object, have %s", excerpt(raw)))
		return nil
	}
	is, err := typeOf(raw)
	if err != nil {
		f.broken(w, "", err)
		return nil
	}
	if is.Kind == "" {
		is.Kind, is.APIVersion = strings.TrimSuffix(of.Kind, listSuffix), of.APIVersion
	}
	if is.Kind == "" {
		return fmt.Errorf("has no kind: %s", excerpt(raw))
	}
	f.tell(w, raw, is)
	return nil
}

// typeOf is what an object says it is. Whatever kubectl or an API server wrote says so
// in front; only where it does not, all of the object is read once more than it has to be.
func typeOf(raw []byte) (is metav1.TypeMeta, err error) {
	dec := json.NewDecoder(bytes.NewReader(raw[:min(len(raw), 512)]))
	_, _ = dec.Token() // {
	for range 2 {
		key, _ := dec.Token()
		value, _ := dec.Token()
		text, _ := value.(string)
		switch key {
		case "apiVersion":
			is.APIVersion = text
		case "kind":
			is.Kind = text
		}
	}
	if is.Kind != "" && is.APIVersion != "" {
		return is, nil
	}
	is = metav1.TypeMeta{}
	err = kubejson.Unmarshal(raw, &is)
	return is, err
}

// tell tells an object of a kind. Versions v1 and v1beta2 of resource.k8s.io differ in
// name only.
func (f *file) tell(w *where, raw []byte, is metav1.TypeMeta) {
	switch is.APIVersion + " " + is.Kind {
	case "v1 Pod":
		decode(f, w, raw, is, f.to.pod)
	case "v1 Node":
		f.report.NodesKnown = true
		decode(f, w, raw, is, f.to.node)
	case "resource.k8s.io/v1 DeviceClass", "resource.k8s.io/v1beta2 DeviceClass":
		f.dra = true
		decode(f, w, raw, is, f.to.deviceClass)
	case "resource.k8s.io/v1 ResourceSlice", "resource.k8s.io/v1beta2 ResourceSlice":
		f.dra = true
		decode(f, w, raw, is, f.to.resourceSlice)
	case "resource.k8s.io/v1 ResourceClaim", "resource.k8s.io/v1beta2 ResourceClaim":
		f.dra = true
		decode(f, w, raw, is, f.to.resourceClaim)
	case "resource.k8s.io/v1beta1 DeviceClass":
		f.dra = true
		convert(f, w, raw, is, v1beta1.Convert_v1beta1_DeviceClass_To_v1_DeviceClass, f.to.deviceClass)
	case "resource.k8s.io/v1beta1 ResourceSlice":
		f.dra = true
		convert(f, w, raw, is, v1beta1.Convert_v1beta1_ResourceSlice_To_v1_ResourceSlice, f.to.resourceSlice)
	case "resource.k8s.io/v1beta1 ResourceClaim":
		f.dra = true
		convert(f, w, raw, is, v1beta1.Convert_v1beta1_ResourceClaim_To_v1_ResourceClaim, f.to.resourceClaim)
	default:
		if strings.HasSuffix(is.Kind, listSuffix) {
			f.innerList(w, raw, is)
			return
		}
		f.ignored(is)
	}
}

// innerList tells the items of a list that is held as a whole, for it is itself an
// item or part of a YAML document.
func (f *file) innerList(w *where, raw []byte, is metav1.TypeMeta) {
	var list struct {
		Items []json.RawMessage `json:"items"`
	}
	if err := kubejson.Unmarshal(raw, &list); err != nil {
		f.broken(w, is.Kind, err)
		return
	}
	if w.depth() == maxDepth {
		f.broken(w, is.Kind, fmt.Errorf("more than %d lists in each other", maxDepth))
		return
	}
	f.sawList(is)
	f.innerItems(w, list.Items, is)
}

func (f *file) innerItems(w *where, items []json.RawMessage, of metav1.TypeMeta) {
	for i, raw := range items {
		item := &where{document: w.document, line: w.line, item: i + 1, list: w}
		if err := f.object(item, raw, of); err != nil {
			f.broken(item, "", err)
		}
	}
}

// sawList notes that a list was there: that it is empty is worth knowing too.
func (f *file) sawList(is metav1.TypeMeta) {
	switch is.Kind {
	case "PodList":
		f.pods = true
	case "NodeList":
		f.report.NodesKnown = true
	case "DeviceClassList", "ResourceSliceList", "ResourceClaimList":
		f.dra = true
	}
}

type named[T any] interface {
	*T
	metav1.Object
}

func decode[T any, P named[T]](f *file, w *where, raw []byte, is metav1.TypeMeta, tell func(*T)) {
	if obj, ok := read[T, P](f, w, raw, is); ok {
		tell(obj)
	}
}

// convert is decode for an older version.
func convert[T, U any, P named[T]](
	f *file, w *where, raw []byte, is metav1.TypeMeta, to func(*T, *U, conversion.Scope) error, tell func(*U),
) {
	obj, ok := read[T, P](f, w, raw, is)
	if !ok {
		return
	}
	out := new(U)
	if err := to(obj, out, nil); err != nil {
		f.broken(w, is.Kind+" "+nameOf(P(obj)), err)
		return
	}
	tell(out)
}

func read[T any, P named[T]](f *file, w *where, raw []byte, is metav1.TypeMeta) (*T, bool) {
	obj := new(T)
	if err := kubejson.Unmarshal(raw, obj); err != nil {
		// What was decoded before the error may have the name.
		f.broken(w, is.Kind+" "+nameOf(P(obj)), err)
		return nil, false
	}
	if P(obj).GetName() == "" {
		f.broken(w, is.Kind, errors.New("has no metadata.name"))
		return nil, false
	}
	return obj, true
}

func nameOf(obj metav1.Object) string {
	if obj.GetNamespace() != "" {
		return obj.GetNamespace() + "/" + obj.GetName()
	}
	return obj.GetName()
}

// excerpt is the beginning of something unexpected.
func excerpt(raw []byte) string {
	const most = 40
	text := strings.TrimSpace(string(raw[:min(len(raw), most+utf8.UTFMax)]))
	if len(raw) <= most {
		return text
	}
	for !utf8.ValidString(text) || len(text) > most {
		text = text[:len(text)-1]
	}
	return text + "…"
}
