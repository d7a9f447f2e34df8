// Command testprogram is what the tests of package e2e run in pods.
package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func main() {
	code, err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

func run(args []string) (code int, err error) {
	switch {
	case len(args) == 1 && args[0] == "hold":
		return hold()
	case len(args) == 1 && args[0] == "env":
		fmt.Println(strings.Join(os.Environ(), "\n"))
		return 0, nil
	case len(args) == 2 && args[0] == "exit":
		return strconv.Atoi(args[1])
	case len(args) == 3 && args[0] == "get":
		return get(args[1], args[2])
	default:
		return 2, errors.New("usage: testprogram hold | env | exit CODE | get URL TOKENFILE")
	}
}

// hold stays until it is told to end: by a signal, or by a request for /exit?code=N.
func hold() (int, error) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	code := make(chan int, 1)
	mux := http.NewServeMux()
	mux.HandleFunc("/exit", func(w http.ResponseWriter, r *http.Request) {
		n, err := strconv.Atoi(r.FormValue("code"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		select {
		case code <- n:
		default: // it has been told before
		}
	})
	server := &http.Server{Addr: ":8080", Handler: mux, ReadHeaderTimeout: time.Minute}
	failed := make(chan error, 1)
	go func() { failed <- server.ListenAndServe() }()
	select {
	case <-ctx.Done():
		return 0, nil
	case n := <-code:
		return n, server.Shutdown(context.Background()) // the answer is on its way
	case err := <-failed:
		// Another container of the pod has the port: only a signal ends this one.
		fmt.Fprintln(os.Stderr, err)
		<-ctx.Done()
		return 0, nil
	}
}

// get reads over HTTPS with a token as a scraper does, whose certificate nobody vouches
// for, and prints the status and the body. "" is no token.
func get(url, tokenFile string) (int, error) {
	request, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		return 1, err
	}
	if tokenFile != "" {
		token, err := os.ReadFile(tokenFile)
		if err != nil {
			return 1, err
		}
		request.Header.Set("Authorization", "Bearer "+string(token))
	}
	client := &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	response, err := client.Do(request)
	if err != nil {
		return 1, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return 1, err
	}
	fmt.Printf("%d\n%s", response.StatusCode, body)
	return 0, nil
}
