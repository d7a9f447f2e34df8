package api

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
)

// worthCompressing is the size from which on a body is.
const worthCompressing = 1 << 10

// Reply answers 200 with a body, or 304 to whoever has it already. The type of the
// content must be set.
func Reply(w http.ResponseWriter, r *http.Request, body []byte) {
	tag := tagOf(body)
	h := w.Header()
	h.Set("ETag", tag)
	h.Set("Cache-Control", "private, no-cache") // keep it, and ask each time whether it is still so
	h.Add("Vary", "Accept-Encoding, Accept, Cookie")
	if holds(r.Header.Values("If-None-Match"), tag) {
		h.Del("Content-Type")
		w.WriteHeader(http.StatusNotModified)
		return
	}
	write(w, r, http.StatusOK, body)
}

// tagOf is a weak tag, because the same content is sent compressed and not.
func tagOf(body []byte) string {
	sum := sha256.Sum256(body)
	return `W/"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`
}

// holds reports whether one of the tags a reader has is this one.
func holds(headers []string, tag string) bool {
	for _, header := range headers {
		for have := range strings.SplitSeq(header, ",") {
			have = strings.TrimSpace(have)
			if have == "*" || strings.TrimPrefix(have, "W/") == strings.TrimPrefix(tag, "W/") {
				return true
			}
		}
	}
	return false
}

func write(w http.ResponseWriter, r *http.Request, status int, body []byte) {
	if len(body) >= worthCompressing && acceptsGzip(r) {
		var small bytes.Buffer
		z, _ := gzip.NewWriterLevel(&small, gzip.BestSpeed) // the level is one there is
		_, _ = z.Write(body)                                // to memory
		_ = z.Close()
		w.Header().Set("Content-Encoding", "gzip")
		body = small.Bytes()
	}
	w.WriteHeader(status)
	_, _ = w.Write(body) // a reader who has gone away is no failure of ours
}

func acceptsGzip(r *http.Request) bool {
	for _, header := range r.Header.Values("Accept-Encoding") {
		for coding := range strings.SplitSeq(header, ",") {
			name, weight, _ := strings.Cut(strings.ReplaceAll(coding, " ", ""), ";")
			if strings.EqualFold(name, "gzip") && strings.Trim(strings.TrimPrefix(weight, "q="), "0.") != "" || strings.EqualFold(name, "gzip") && weight == "" {
				return true
			}
		}
	}
	return false
}

// problem is an error as RFC 9457 describes one.
type problem struct {
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
}

// Refuse answers that a request failed, and why.
func Refuse(w http.ResponseWriter, r *http.Request, status int, detail string) {
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	h.Set("Cache-Control", "no-store")
	if status == http.StatusServiceUnavailable {
		h.Set("Retry-After", "1")
	}
	body, _ := json.Marshal(problem{http.StatusText(status), status, detail}) // strings cannot fail
	write(w, r, status, append(body, '\n'))
}
