package serve_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

type rule struct {
	Record, Alert, Expr string
	Annotations         map[string]string
}

func rules(t *testing.T) (all []rule) {
	t.Helper()
	var file struct{ Groups []struct{ Rules []rule } }
	if err := yaml.Unmarshal([]byte(repository(t, "deploy", "prometheus", "rules.yaml")), &file); err != nil {
		t.Fatal(err)
	}
	for _, group := range file.Groups {
		all = append(all, group.Rules...)
	}
	return all
}

type target struct {
	RefID      string
	Expr       string
	Datasource *source
}

type source struct{ Type, UID string }

type panel struct {
	ID         int
	Type       string
	Title      string
	Datasource *source
	GridPos    struct{ X, Y, W, H int }
	Targets    []target
}

func panels(t *testing.T) []panel {
	t.Helper()
	var dashboard struct {
		Panels     []panel
		Templating struct {
			List []struct{ Name, Query string }
		}
	}
	if err := json.Unmarshal([]byte(repository(t, "deploy", "grafana", "dashboard.json")), &dashboard); err != nil {
		t.Fatal(err)
	}
	var variables []string
	for _, variable := range dashboard.Templating.List {
		variables = append(variables, variable.Name)
	}
	if want := []string{"datasource", "cluster", "resource"}; !slices.Equal(variables, want) {
		t.Errorf("the variables are %q, want %q", variables, want)
	}
	return dashboard.Panels
}

var (
	// word is anything in a query that may be the name of a metric: ours and those of
	// others all have an underscore, and labels have none.
	word      = regexp.MustCompile(`[a-zA-Z_:$][a-zA-Z0-9_:$]*`)
	quoted    = regexp.MustCompile(`"[^"]*"`)
	functions = []string{"max_over_time", "histogram_quantile"}
	histogram = regexp.MustCompile(`_(bucket|sum|count)$`)
)

// metricsOf lists what may be names of metrics in a query, and the names of
// recorded ones.
func metricsOf(query string) (names, recorded []string) {
	for _, name := range word.FindAllString(quoted.ReplaceAllString(query, `""`), -1) {
		switch {
		case strings.HasPrefix(name, "$"), slices.Contains(functions, name):
		case strings.Contains(name, ":"):
			recorded = append(recorded, name)
		case strings.Contains(name, "_"):
			names = append(names, histogram.ReplaceAllString(name, ""))
		}
	}
	return names, recorded
}

// TestRulesAndDashboardUseWhatIsDocumented: a query for a metric that does not exist
// is empty, and an alert on it silent for ever.
func TestRulesAndDashboardUseWhatIsDocumented(t *testing.T) {
	docs := documented(t)
	docs["kube_node_info"] = "gauge" // of kube-state-metrics, as docs/metrics.md says
	var records []string
	queries := make(map[string]string)
	for _, rule := range rules(t) {
		queries["rule "+rule.Record+rule.Alert] = rule.Expr
		records = append(records, rule.Record)
	}
	for _, panel := range panels(t) {
		for _, target := range panel.Targets {
			queries[fmt.Sprintf("panel %q %s", panel.Title, target.RefID)] = target.Expr
		}
	}
	found := 0
	for where, query := range queries {
		names, recorded := metricsOf(query)
		for _, name := range names {
			found++
			if docs[name] == "" {
				t.Errorf("%s uses %s, which docs/metrics.md does not know", where, name)
			}
		}
		for _, name := range recorded {
			if !slices.Contains(records, name) {
				t.Errorf("%s uses %s, which no rule records", where, name)
			}
		}
	}
	if found < 50 {
		t.Errorf("only %d names found in rules and dashboard", found)
	}
}

// TestEveryAlertIsTestedBothWays, firing and silent, and has a section in the
// runbook that its annotation leads to.
func TestEveryAlertIsTestedBothWays(t *testing.T) {
	var file struct {
		Tests []struct {
			AlertRuleTest []struct {
				Alertname string
				ExpAlerts []any `json:"exp_alerts"`
			} `json:"alert_rule_test"`
		}
	}
	if err := yaml.Unmarshal([]byte(repository(t, "deploy", "prometheus", "rules_test.yaml")), &file); err != nil {
		t.Fatal(err)
	}
	fires, silent := make(map[string]bool), make(map[string]bool)
	for _, test := range file.Tests {
		for _, at := range test.AlertRuleTest {
			if len(at.ExpAlerts) > 0 {
				fires[at.Alertname] = true
			} else {
				silent[at.Alertname] = true
			}
		}
	}
	var alerts, sections []string
	for _, rule := range rules(t) {
		if rule.Alert == "" {
			continue
		}
		alerts = append(alerts, rule.Alert)
		if !fires[rule.Alert] || !silent[rule.Alert] {
			t.Errorf("alert %s: tested to fire %v, not to fire %v", rule.Alert, fires[rule.Alert], silent[rule.Alert])
		}
		if want := "docs/runbook.md#" + strings.ToLower(rule.Alert); !strings.HasSuffix(rule.Annotations["runbook_url"], want) {
			t.Errorf("alert %s leads to %q, want …%s", rule.Alert, rule.Annotations["runbook_url"], want)
		}
	}
	for _, heading := range regexp.MustCompile(`(?m)^## (\w+)$`).FindAllStringSubmatch(repository(t, "docs", "runbook.md"), -1) {
		sections = append(sections, heading[1])
	}
	if !slices.Equal(alerts, sections) {
		t.Errorf("sections of docs/runbook.md: %q, want one for each alert: %q", sections, alerts)
	}
}

// TestDashboard: what Grafana would only say by showing nothing.
func TestDashboard(t *testing.T) {
	var ids []int
	taken := make(map[[2]int]int)
	for _, panel := range panels(t) {
		if slices.Contains(ids, panel.ID) || panel.ID == 0 {
			t.Errorf("panel %q: its id %d is 0 or that of another", panel.Title, panel.ID)
		}
		ids = append(ids, panel.ID)
		for x := range panel.GridPos.W {
			for y := range panel.GridPos.H {
				at := [2]int{panel.GridPos.X + x, panel.GridPos.Y + y}
				if taken[at] != 0 || at[0] >= 24 {
					t.Fatalf("panel %q lies on panel %d or beyond the edge", panel.Title, taken[at])
				}
				taken[at] = panel.ID
			}
		}
		if panel.Datasource == nil || *panel.Datasource != (source{Type: "prometheus", UID: "$datasource"}) {
			t.Errorf("panel %q: data source %v", panel.Title, panel.Datasource)
		}
		if len(panel.Targets) == 0 {
			t.Errorf("panel %q has no query", panel.Title)
		}
		for _, target := range panel.Targets {
			names, _ := metricsOf(target.Expr)
			for _, name := range names {
				selector := regexp.MustCompile(name + `(_bucket|_sum|_count)?\{cluster=~"\$cluster"`)
				if !selector.MatchString(target.Expr) {
					t.Errorf("panel %q %s: %s is of all clusters", panel.Title, target.RefID, name)
				}
			}
		}
	}
}

// TestQueriesOfTheDashboard are valid. PROMTOOL names the program that knows; make
// rules sets it.
func TestQueriesOfTheDashboard(t *testing.T) {
	promtool := os.Getenv("PROMTOOL")
	if promtool == "" {
		t.Skip("PROMTOOL is not set; make rules sets it")
	}
	variables := strings.NewReplacer("$cluster", ".*", "$resource", "nvidia.com/gpu", "$__rate_interval", "5m")
	var asRules []map[string]string
	for _, panel := range panels(t) {
		for _, target := range panel.Targets {
			asRules = append(asRules, map[string]string{"record": fmt.Sprintf("panel:%d:%s", panel.ID, target.RefID), "expr": variables.Replace(target.Expr)})
		}
	}
	file := filepath.Join(t.TempDir(), "dashboard.yaml")
	text, err := yaml.Marshal(map[string]any{"groups": []map[string]any{{"name": "dashboard", "rules": asRules}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), promtool, "check", "rules", file).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
