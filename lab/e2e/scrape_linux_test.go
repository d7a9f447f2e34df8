package e2e

import (
	"net"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestScraperThroughService: a pod reads /metrics through the chart's Service with its
// service account's token, if that has the chart's role; and not without.
func TestScraperThroughService(t *testing.T) {
	e := newEnv(t)
	e.running(holder("a", 2))
	e.settled(2)
	service, err := e.client.CoreV1().Services(e.site.namespace).Get(t.Context(), e.site.controller(), metav1.GetOptions{})
	e.must(err)
	url := "https://" + net.JoinHostPort(service.Spec.ClusterIP, strconv.Itoa(int(service.Spec.Ports[0].Port))) + "/metrics"
	const token = "/var/run/secrets/kubernetes.io/serviceaccount/token"
	e.scraper("prometheus", true)
	e.scraper("stranger", false)
	for _, tc := range []struct{ name, account, token, status string }{
		{"prometheus", "prometheus", token, "200"},
		{"stranger", "stranger", token, "403"},
		{"nobody", "stranger", "", "401"},
	} {
		p := pod(tc.name, container("get", 0, "get", url, tc.token))
		p.Spec.ServiceAccountName = tc.account
		e.create(p)
		e.reaches(tc.name, corev1.PodSucceeded)
		status, body, _ := strings.Cut(e.log(tc.name, "get"), "\n")
		if status != tc.status {
			t.Errorf("%s is answered with %s, want %s", tc.name, status, tc.status)
		}
		if found := strings.Contains(body, "gpu_summary_leader "); found != (tc.status == "200") {
			t.Errorf("%s has got metrics: %v, with status %s:\n%.300s", tc.name, found, status, body)
		}
	}
	// Behind a Service they take turns. By itself, each is right: one leads, and it has
	// the numbers.
	leaders := 0.0
	for _, p := range e.site.pods(t.Context()) {
		text := e.metrics(&p)
		leads, err := sample(text, "gpu_summary_leader")
		e.must(err)
		leaders += leads
		requested, err := sample(text, "gpu_summary_node_requested_devices", `node="`+e.node.Name()+`"`)
		e.must(err)
		if want := 2 * leads; requested != want {
			t.Errorf("%s, which leads: %v, shows %v requested, want %v", p.Name, leads, requested, want)
		}
	}
	if leaders != 1 {
		t.Errorf("%v replicas lead", leaders)
	}
}
