// Command testprogram is what the tests of package realnode run in pods.
package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 0 {
		return errors.New("usage: testprogram hello|whoami|serve|get URL|wait")
	}
	switch args[0] {
	case "hello":
		fmt.Println("hello from", os.Getenv("HOSTNAME"))
		return nil
	case "whoami":
		name, err := whoami()
		if err == nil {
			fmt.Println(name)
		}
		return err
	case "serve":
		return serve()
	case "get":
		return get(args[1:])
	case "wait":
		stop := make(chan os.Signal, 1)
		signal.Notify(stop, syscall.SIGTERM)
		<-stop
		return nil
	default:
		return fmt.Errorf("%s: no such thing to do", args[0])
	}
}

func serve() error {
	server := &http.Server{
		Addr:              ":8080",
		ReadHeaderTimeout: time.Minute,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, os.Getenv("HOSTNAME"))
		}),
	}
	return server.ListenAndServe()
}

// get prints what is at a URL, once somebody answers there.
func get(urls []string) error {
	client := &http.Client{Timeout: 2 * time.Second}
	var last error
	for range 30 {
		for _, url := range urls {
			response, err := client.Get(url)
			if err != nil {
				last = err
				continue
			}
			defer response.Body.Close()
			_, err = io.Copy(os.Stdout, response.Body)
			return err
		}
		time.Sleep(time.Second)
	}
	return fmt.Errorf("nobody answers: %w", last)
}

// whoami asks the API server, as in-cluster clients find it, whom it takes this pod for.
func whoami() (string, error) {
	const account = "/var/run/secrets/kubernetes.io/serviceaccount"
	ca, err := os.ReadFile(filepath.Join(account, "ca.crt"))
	if err != nil {
		return "", err
	}
	token, err := os.ReadFile(filepath.Join(account, "token"))
	if err != nil {
		return "", err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	client := &http.Client{
		Timeout:   20 * time.Second,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}},
	}
	host := net.JoinHostPort(os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT"))
	review := []byte(`{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}`)
	request, err := http.NewRequest(http.MethodPost, "https://"+host+"/apis/authentication.k8s.io/v1/selfsubjectreviews", bytes.NewReader(review))
	if err != nil {
		return "", err
	}
	request.Header.Set("Authorization", "Bearer "+string(token))
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return "", err
	}
	var answer struct {
		Status struct {
			UserInfo struct{ Username string }
		}
	}
	if err := json.Unmarshal(body, &answer); err != nil || response.StatusCode != http.StatusCreated {
		return "", fmt.Errorf("%s: %s", response.Status, body)
	}
	return answer.Status.UserInfo.Username, nil
}
