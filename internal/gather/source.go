package gather

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"

	"golang.org/x/text/encoding/unicode"
)

const (
	// maxObject bounds what is held of a dump: an object, or what there is of a list
	// besides its items. An API server stores two or three MiB at most.
	maxObject = 16 << 20
	chunkSize = 64 << 10
	// maxLayers bounds how often a dump is unpacked.
	maxLayers = 4
)

var errTooLarge = fmt.Errorf("an object of more than %d MiB", maxObject>>20)

// source is the text of a dump. What was read of it and not needed can be given
// back, and it knows in which line it is.
type source struct {
	ctx  context.Context
	from io.Reader
	rest []byte // read, and not yet taken
	buf  []byte
	line int // lines that were taken to their end
	// budget is how much may be taken until it is set anew.
	budget int
}

// open unpacks a dump and makes UTF-8 of it.
func open(ctx context.Context, r io.Reader) (*source, error) {
	for range maxLayers {
		b := bufio.NewReaderSize(r, chunkSize)
		head, err := b.Peek(3)
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		switch {
		case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
			z, err := gzip.NewReader(b)
			if err != nil {
				return nil, cutOff(err)
			}
			r = unpacked{z}
		case bytes.HasPrefix(head, []byte{0xff, 0xfe}), len(head) > 1 && head[0] != 0 && head[1] == 0:
			r = unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewDecoder().Reader(b)
		case bytes.HasPrefix(head, []byte{0xfe, 0xff}), len(head) > 1 && head[0] == 0 && head[1] != 0:
			r = unicode.UTF16(unicode.BigEndian, unicode.UseBOM).NewDecoder().Reader(b)
		default:
			return &source{ctx: ctx, from: b, buf: make([]byte, chunkSize), budget: maxObject}, nil
		}
	}
	return nil, fmt.Errorf("packed more than %d times", maxLayers-1)
}

// unpacked says of packed data that ends too early what that means. To others it is a
// text that ends.
type unpacked struct{ *gzip.Reader }

func (u unpacked) Read(p []byte) (int, error) {
	n, err := u.Reader.Read(p)
	return n, cutOff(err)
}

func cutOff(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("gzip: the data ends too early, make the dump anew")
	}
	return err
}

// fill reads on when nothing is left.
func (s *source) fill() error {
	for len(s.rest) == 0 {
		if s.ctx.Err() != nil {
			return context.Cause(s.ctx)
		}
		n, err := s.from.Read(s.buf)
		if s.rest = s.buf[:n]; n == 0 && err != nil {
			return err
		}
	}
	return nil
}

// take takes what was read.
func (s *source) take(n int) []byte {
	taken := s.rest[:n]
	s.rest = s.rest[n:]
	s.line += bytes.Count(taken, newline)
	s.budget -= n
	return taken
}

var newline = []byte{'\n'}

// Read is how a decoder takes.
func (s *source) Read(p []byte) (int, error) {
	if err := s.fill(); err != nil {
		return 0, err
	}
	if s.budget <= 0 {
		return 0, errTooLarge
	}
	return copy(p, s.take(min(len(p), len(s.rest)))), nil
}

// readLine appends the next line with its end to text. At the end of the dump there
// may be none to it.
func (s *source) readLine(text []byte) ([]byte, error) {
	for begun := false; ; begun = true {
		err := s.fill()
		switch {
		case errors.Is(err, io.EOF) && begun:
			return text, nil
		case err != nil:
			return text, err
		case s.budget <= 0:
			return text, errTooLarge
		}
		if i := bytes.IndexByte(s.rest, '\n'); i >= 0 {
			return append(text, s.take(i+1)...), nil
		}
		text = append(text, s.take(len(s.rest))...)
	}
}

// giveBack returns what was taken last.
func (s *source) giveBack(text []byte) {
	s.line -= bytes.Count(text, newline)
	s.rest = append(bytes.Clone(text), s.rest...)
}

// peek shows the next n bytes, fewer at the end.
func (s *source) peek(n int) ([]byte, error) {
	if err := s.fill(); err != nil {
		return nil, err
	}
	for len(s.rest) < n {
		have := bytes.Clone(s.rest)
		s.rest = nil
		err := s.fill()
		s.rest = append(have, s.rest...)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	return s.rest[:min(n, len(s.rest))], nil
}

var byteOrderMark = []byte{0xef, 0xbb, 0xbf}

// skipBlank takes empty lines, and marks that somebody has put files together with.
func (s *source) skipBlank() error {
	for {
		head, err := s.peek(chunkSize)
		if err != nil {
			return err
		}
		s.budget = maxObject
		text := bytes.TrimLeft(head, " \t\r\n")
		switch blank := head[:len(head)-len(text)]; {
		case bytes.HasPrefix(text, byteOrderMark):
			s.take(len(blank) + len(byteOrderMark))
		case len(text) == 0:
			s.take(len(blank))
		default:
			s.take(bytes.LastIndexByte(blank, '\n') + 1)
			return nil
		}
	}
}
