package run

import (
	"context"
	"fmt"
	"net"
	"net/netip"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/gpu-summary/gpu-summary-controller/internal/serve"
)

// The values of --http-auth.
const (
	authNone       = "none"
	authKubernetes = "kubernetes"
)

// httpAuth is how readers over HTTP are judged. On an address that only this machine
// has, everybody may read. Anywhere else tokens are asked for, unless somebody wrote
// that they are not: to refuse to start would be no safer, and one who only wanted
// numbers to be counted would have none.
func (o *Options) httpAuth() string {
	switch {
	case o.HTTPAuth != "":
		return o.HTTPAuth
	case onLoopback(o.HTTPAddress):
		return authNone
	default:
		return authKubernetes
	}
}

func onLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || (err == nil && ip.IsLoopback())
}

// checkAccess reports what cannot work of the flags about readers.
func (o *Options) checkAccess(bad func(flag string, value any, why string)) {
	if o.HTTPAuth != "" && o.HTTPAuth != authNone && o.HTTPAuth != authKubernetes {
		bad("http-auth", o.HTTPAuth, "want none or kubernetes")
	}
	if len(o.HTTPAudiences) > 0 && o.httpAuth() != authKubernetes {
		bad("http-auth-audience", o.HTTPAudiences, "nobody is asked for a token; add --http-auth=kubernetes")
	}
	if o.TLSCertFile == "" && o.TLSKeyFile != "" {
		bad("tls-private-key-file", o.TLSKeyFile, "needs --tls-cert-file")
	}
	if o.TLSCertFile != "" && o.TLSKeyFile == "" {
		bad("tls-cert-file", o.TLSCertFile, "needs --tls-private-key-file")
	}
}

// guard sets who may read, and the certificate. Its client is one of its own, for the
// limit of the other one is not for readers to use up; how much they may ask is limited
// where they are judged.
func (o *Options) guard(ctx context.Context, config *rest.Config, s *serve.Options) (err error) {
	auth := o.httpAuth()
	if o.TLSCertFile != "" {
		s.TLS, err = serve.GivenCertificate(o.TLSCertFile, o.TLSKeyFile)
	} else if auth == authKubernetes {
		s.TLS, err = serve.SelfMadeCertificate()
	}
	if err != nil {
		return err
	}
	if auth == authNone {
		if !onLoopback(o.HTTPAddress) {
			klog.FromContext(ctx).Info("Whoever can reach the address may read what is served (--http-auth=none)", "address", o.HTTPAddress)
		}
		return nil
	}
	own := rest.CopyConfig(config)
	own.QPS = -1
	client, err := kubernetes.NewForConfig(own)
	if err != nil {
		return fmt.Errorf("make client for readers: %w", err)
	}
	s.Auth = serve.NewReviews(serve.ReviewOptions{
		Tokens:    client.AuthenticationV1().TokenReviews(),
		Access:    client.AuthorizationV1().SubjectAccessReviews(),
		Audiences: o.HTTPAudiences,
	})
	return nil
}
