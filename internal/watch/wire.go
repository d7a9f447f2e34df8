package watch

import (
	"bytes"
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

// What the API server sends is read here without being decoded. In Kubernetes'
// protobuf an object is a magic number and an envelope, which has the object's kind
// and its bytes; a watch event has a type and such an object. The numbers are those
// of generated.proto in k8s.io/apimachinery, and can never change.

// magic begins every object in protobuf.
var magic = []byte("k8s\x00")

var errMalformed = errors.New("malformed protobuf")

// each calls f with the number and the bytes of every field that has bytes: texts,
// messages, entries of maps. Others are passed over, as are fields unknown to us.
func each(message []byte, f func(number protowire.Number, value []byte) error) error {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return errMalformed
		}
		m := protowire.ConsumeFieldValue(number, kind, message[n:])
		if m < 0 {
			return errMalformed
		}
		if kind == protowire.BytesType {
			value, _ := protowire.ConsumeBytes(message[n:])
			if err := f(number, value); err != nil {
				return err
			}
		}
		message = message[n+m:]
	}
	return nil
}

// readEvent takes a watch event apart.
func readEvent(frame []byte) (kind, object []byte, err error) {
	err = each(frame, func(number protowire.Number, value []byte) error {
		switch number {
		case 1:
			kind = value
		case 2: // RawExtension
			return each(value, func(number protowire.Number, value []byte) error {
				if number == 1 {
					object = value
				}
				return nil
			})
		}
		return nil
	})
	return kind, object, err
}

// readObject takes an object out of its envelope.
func readObject(object []byte) (kind, message []byte, err error) {
	envelope, ok := bytes.CutPrefix(object, magic)
	if !ok {
		return nil, nil, fmt.Errorf("%w: an object does not begin with %q", errMalformed, magic)
	}
	err = each(envelope, func(number protowire.Number, value []byte) error {
		switch number {
		case 1: // TypeMeta
			return each(value, func(number protowire.Number, value []byte) error {
				if number == 2 {
					kind = value
				}
				return nil
			})
		case 2:
			message = value
		}
		return nil
	})
	return kind, message, err
}

// identity is the part of an object's metadata that every event needs.
type identity struct{ namespace, name, resourceVersion []byte }

func readIdentity(message []byte) (id identity, err error) {
	err = each(message, func(number protowire.Number, value []byte) error {
		if number != 1 {
			return nil
		}
		return each(value, func(number protowire.Number, value []byte) error {
			switch number {
			case 1:
				id.name = value
			case 3:
				id.namespace = value
			case 6:
				id.resourceVersion = value
			}
			return nil
		})
	})
	return id, err
}

// shape says which fields of a message are worth decoding: a bit for each that is
// kept whole, and the shapes of those that are kept in part. Everything else, most
// of the bytes of a pod or a node, is passed over in steps as long as the fields.
type shape struct {
	whole uint64
	parts []part
}

type part struct {
	number protowire.Number
	shape  *shape
	// only, if set, decides by the bytes of the value whether it is kept at all.
	only func(value []byte) bool
}

func fields(numbers ...int) (set uint64) {
	for _, n := range numbers {
		set |= 1 << n
	}
	return set
}

func (s *shape) keeps(number protowire.Number) bool {
	return number < 64 && s.whole&(1<<number) != 0
}

func (s *shape) part(number protowire.Number) *part {
	for i := range s.parts {
		if s.parts[i].number == number {
			return &s.parts[i]
		}
	}
	return nil
}

// cut appends to dst what is kept of a message. The result is a message of the same
// kind, for the same decoder.
func (s *shape) cut(dst, message []byte) ([]byte, error) {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return nil, errMalformed
		}
		m := protowire.ConsumeFieldValue(number, kind, message[n:])
		if m < 0 {
			return nil, errMalformed
		}
		field := message[:n+m]
		message = message[n+m:]
		if s.keeps(number) {
			dst = append(dst, field...)
			continue
		}
		part := s.part(number)
		if part == nil || kind != protowire.BytesType {
			continue
		}
		value, _ := protowire.ConsumeBytes(field[n:])
		switch {
		case part.only != nil && !part.only(value):
		case part.shape == nil:
			dst = append(dst, field...)
		default:
			var err error
			if dst, err = part.shape.cutPart(dst, field[:n], value); err != nil {
				return nil, err
			}
		}
	}
	return dst, nil
}

// lengthBytes is how many bytes are set aside for a length that is not yet known.
// A length need not be written in as few bytes as it could.
const lengthBytes = 5

func (s *shape) cutPart(dst, tag, value []byte) ([]byte, error) {
	dst = append(dst, tag...)
	at := len(dst)
	dst = append(dst, make([]byte, lengthBytes)...)
	dst, err := s.cut(dst, value)
	if err != nil {
		return nil, err
	}
	length := len(dst) - at - lengthBytes
	for i := range lengthBytes {
		dst[at+i] = byte(length>>(7*i)) | 0x80
	}
	dst[at+lengthBytes-1] &= 0x7f
	return dst, nil
}
