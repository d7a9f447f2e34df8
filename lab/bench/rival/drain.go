package rival

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// drain is the limit: it reads what a controller has to read, and throws it away.
// Nobody who looks at every pod can be cheaper.
func drain(ctx context.Context, config *rest.Config, _ Options, say func(string)) error {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return fmt.Errorf("make client: %w", err)
	}
	complete := make(chan struct{}, 2)
	g, ctx := errgroup.WithContext(ctx)
	for _, resource := range []string{"pods", "nodes"} {
		g.Go(func() error {
			return drainOne(ctx, client, config.Host+"/api/v1/"+resource, func() { complete <- struct{}{} })
		})
	}
	g.Go(func() error {
		for range 2 {
			select {
			case <-complete:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		say("ready")
		return nil
	})
	return g.Wait()
}

// drainOne reads one resource as a reflector would: a watch that begins with the
// state, else a list and then a watch.
func drainOne(ctx context.Context, client *http.Client, url string, complete func()) error {
	const follow = "?watch=true&allowWatchBookmarks=true"
	body, err := open(ctx, client, url+follow+"&sendInitialEvents=true&resourceVersionMatch=NotOlderThan")
	if errors.Is(err, errRefused) {
		if body, err = open(ctx, client, url+"?resourceVersion=0"); err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, body)
		if err = errors.Join(err, body.Close()); err != nil {
			return fmt.Errorf("read list: %w", err)
		}
		complete()
		// Whatever has changed meanwhile comes once more, as an addition.
		body, err = open(ctx, client, url+follow+"&resourceVersion=2000000000")
		complete = func() {}
	}
	if err != nil {
		return err
	}
	defer body.Close()
	return frames(body, complete)
}

var errRefused = errors.New("refused")

func open(ctx context.Context, client *http.Client, url string) (io.ReadCloser, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/vnd.kubernetes.protobuf,application/json")
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode == http.StatusOK {
		if response.Header.Get("Content-Type")[:16] == "application/json" {
			return lines{response.Body}, nil
		}
		return response.Body, nil
	}
	response.Body.Close()
	return nil, fmt.Errorf("%w: %s answered %s", errRefused, url, response.Status)
}

// lines marks a body whose frames are lines of JSON.
type lines struct{ io.ReadCloser }

// small is the size above which a frame is no bookmark.
const small = 1 << 10

// frames reads to the end, and calls complete at the bookmark that ends the state.
func frames(body io.Reader, complete func()) error {
	r := bufio.NewReaderSize(body, 64<<10)
	end := []byte(metav1.InitialEventsAnnotationKey)
	var buffer []byte
	for {
		var err error
		if _, ok := body.(lines); ok {
			buffer, err = readLine(r, buffer[:0])
		} else {
			buffer, err = readFrame(r, buffer)
		}
		if err != nil {
			return fmt.Errorf("read watch: %w", err)
		}
		if len(buffer) < small && bytes.Contains(buffer, end) {
			complete()
			complete = func() {}
		}
	}
}

func readFrame(r io.Reader, buffer []byte) ([]byte, error) {
	var length [4]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return nil, err
	}
	n := int(binary.BigEndian.Uint32(length[:]))
	if n > cap(buffer) {
		buffer = make([]byte, 2*n)
	}
	buffer = buffer[:n]
	_, err := io.ReadFull(r, buffer)
	return buffer, err
}

func readLine(r *bufio.Reader, buffer []byte) ([]byte, error) {
	for {
		part, more, err := r.ReadLine()
		buffer = append(buffer, part...)
		if err != nil || !more {
			return buffer, err
		}
	}
}
