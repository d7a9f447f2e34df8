package preflight

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
)

// Answer is what the API server says of one verb of a need.
type Answer struct {
	Need
	Verb    string
	Allowed bool
	// Reason and EvaluationError are the server's words. There may be an error and an
	// answer all the same: a role that is bound and does not exist, for one.
	Reason          string
	EvaluationError string
}

// status sorts: what is missing comes first, what is missed most before all.
func (a Answer) status() status {
	switch {
	case a.Allowed:
		return allowed
	case a.Optional != "":
		return missingOptional
	default:
		return missing
	}
}

type status int

const (
	missing status = iota
	missingOptional
	allowed
)

func (s status) String() string {
	return [...]string{"missing", "missing (optional)", "allowed"}[s]
}

// Report is what was asked and answered.
type Report struct {
	Server  string   // where, if the caller says so
	User    string   // who we are, "" if the server does not tell
	Answers []Answer // in the order of the needs
}

// Missing returns how many permissions are missing without which the controller
// does not work, and how many others.
func (r Report) Missing() (required, optional int) {
	for _, a := range r.Answers {
		switch a.status() {
		case missing:
			required++
		case missingOptional:
			optional++
		}
	}
	return required, optional
}

// sorted returns the answers with the missing ones first.
func (r Report) sorted() []Answer {
	return slices.SortedStableFunc(slices.Values(r.Answers), func(a, b Answer) int { return int(a.status() - b.status()) })
}

// Format is how a report is written.
type Format string

// The formats: for people, for programs, and what to apply to have what is missing.
const (
	Table Format = "table"
	JSON  Format = "json"
	YAML  Format = "yaml"
)

// Check refuses a format that there is not.
func (f Format) Check() error {
	if f != Table && f != JSON && f != YAML {
		return fmt.Errorf("--output=%s: want table, json or yaml", f)
	}
	return nil
}

// Write writes the report. Only a table on a terminal is coloured.
func (r Report) Write(w io.Writer, format Format) error {
	var text []byte
	switch format {
	case JSON:
		var err error
		if text, err = r.json(); err != nil {
			return fmt.Errorf("encode report: %w", err)
		}
	case YAML:
		text = r.yaml()
	default:
		text = r.table(isTerminal(w))
	}
	if _, err := w.Write(text); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

// permission is an Answer in JSON. Programs rely on these names.
type permission struct {
	Verb            string `json:"verb"`
	Group           string `json:"group"`
	Resource        string `json:"resource"`
	Subresource     string `json:"subresource,omitempty"`
	Namespace       string `json:"namespace,omitempty"`
	Name            string `json:"name,omitempty"`
	Allowed         bool   `json:"allowed"`
	Required        bool   `json:"required"`
	For             string `json:"for"`
	Without         string `json:"without,omitempty"`
	Instead         string `json:"instead,omitempty"`
	Reason          string `json:"reason,omitempty"`
	EvaluationError string `json:"evaluationError,omitempty"`
}

func (r Report) json() ([]byte, error) {
	required, optional := r.Missing()
	permissions := []permission{}
	for _, a := range r.sorted() {
		permissions = append(permissions, permission{
			Verb: a.Verb, Group: a.Group, Resource: a.Resource, Subresource: a.Subresource, Namespace: a.Namespace, Name: a.Name,
			Allowed: a.Allowed, Required: a.Optional == "",
			For: a.For, Without: a.Optional, Instead: a.Instead, Reason: a.Reason, EvaluationError: a.EvaluationError,
		})
	}
	text, err := json.MarshalIndent(struct {
		Server          string       `json:"server,omitempty"`
		User            string       `json:"user,omitempty"`
		MissingRequired int          `json:"missingRequired"`
		MissingOptional int          `json:"missingOptional"`
		Permissions     []permission `json:"permissions"`
	}{r.Server, r.User, required, optional, permissions}, "", "  ")
	return append(text, '\n'), err
}
