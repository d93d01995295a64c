package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

const (
	clusters     = "/apis/cluster.x-k8s.io/v1beta1/clusters"
	plain        = "application/json"
	namesOnly    = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
	nameOnly     = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	longestWatch = 10 * time.Minute
	longestPause = 30 * time.Second
)

// state is what a list saw: the version of each namespace (empty: it may not be read yet) and of the Clusters.
type state struct {
	clusters   string
	namespaces map[string]string
}

type list struct {
	Metadata struct {
		ResourceVersion string `json:"resourceVersion"`
	} `json:"metadata"`
	Items []json.RawMessage `json:"items"`
}

type named struct {
	Metadata struct {
		Namespace string `json:"namespace"`
	} `json:"metadata"`
}

type event struct {
	Type   string          `json:"type"`
	Object json.RawMessage `json:"object"`
}

// refused is an answer of the API server that is no success.
type refused struct{ status int }

func (r refused) Error() string { return fmt.Sprintf("the API server answers %d", r.status) }

func (p *proxy) list(w http.ResponseWriter, r *http.Request) {
	found, items, err := p.collect(r.Context(), chosen(r))
	if err != nil {
		refuse(w, http.StatusServiceUnavailable, "ServiceUnavailable", err.Error())
		return
	}
	w.Header().Set("Content-Type", plain)
	_ = json.NewEncoder(w).Encode(map[string]any{
		"kind":       "SecretList",
		"apiVersion": "v1",
		"metadata":   map[string]string{"resourceVersion": p.remember(found)},
		"items":      items,
	})
}

// collect lists the Secrets of each namespace that has a Cluster.
func (p *proxy) collect(ctx context.Context, selection url.Values) (state, []json.RawMessage, error) {
	items := []json.RawMessage{}
	known, err := p.ask(ctx, clusters, nil, namesOnly)
	if err != nil {
		return state{}, nil, fmt.Errorf("clusters: %w", err)
	}
	found := state{known.Metadata.ResourceVersion, map[string]string{}}
	for _, item := range known.Items {
		place := namespaceOf(item)
		if _, seen := found.namespaces[place]; seen || place == "" {
			continue
		}
		secrets, err := p.ask(ctx, secretsOf(place), selection, plain)
		if closed(err) {
			found.namespaces[place] = ""
			continue
		}
		if err != nil {
			return state{}, nil, fmt.Errorf("secrets of %s: %w", place, err)
		}
		found.namespaces[place] = secrets.Metadata.ResourceVersion
		items = append(items, secrets.Items...)
	}
	return found, items, nil
}

// watch tells what happens in all these namespaces, and in those that get a Cluster meanwhile. It ends when any part of
// it does; the manager lists again then.
func (p *proxy) watch(w http.ResponseWriter, r *http.Request) {
	began, known := p.recall(r.URL.Query().Get("resourceVersion"))
	if !known {
		refuse(w, http.StatusGone, "Expired", "list again")
		return
	}
	limit := longestWatch
	if seconds, err := strconv.Atoi(r.URL.Query().Get("timeoutSeconds")); err == nil && seconds > 0 {
		limit = min(limit, time.Duration(seconds)*time.Second)
	}
	ctx, end := context.WithTimeout(r.Context(), limit)
	defer end()
	lines := make(chan event)
	selection := chosen(r)
	for place, version := range began.namespaces {
		go p.follow(ctx, end, place, version, selection, lines)
	}
	go p.followClusters(ctx, end, began, selection, lines)
	w.Header().Set("Content-Type", plain)
	w.WriteHeader(http.StatusOK)
	flush := http.NewResponseController(w)
	_ = flush.Flush()
	encoder := json.NewEncoder(w)
	for {
		select {
		case <-ctx.Done():
			return
		case line := <-lines:
			if encoder.Encode(line) != nil || flush.Flush() != nil {
				return
			}
		}
	}
}

// follow hands on the events of one namespace. Without a version it lists first, as soon as it may.
func (p *proxy) follow(
	ctx context.Context, end func(), place, version string, selection url.Values, lines chan<- event,
) {
	defer end()
	for pause := time.Second; version == ""; pause = min(2*pause, longestPause) {
		secrets, err := p.ask(ctx, secretsOf(place), selection, plain)
		if closed(err) {
			if !wait(ctx, pause) {
				return
			}
			continue
		}
		if err != nil {
			return
		}
		for _, item := range secrets.Items {
			if !send(ctx, lines, event{"ADDED", withKind(item)}) {
				return
			}
		}
		version = secrets.Metadata.ResourceVersion
	}
	p.stream(ctx, secretsOf(place), version, selection, plain, func(got event) bool { return send(ctx, lines, got) })
}

func (p *proxy) followClusters(
	ctx context.Context, end func(), began state, selection url.Values, lines chan<- event,
) {
	defer end()
	seen := map[string]bool{}
	for place := range began.namespaces {
		seen[place] = true
	}
	p.stream(ctx, clusters, began.clusters, nil, nameOnly, func(got event) bool {
		place := namespaceOf(got.Object)
		if got.Type != "DELETED" && place != "" && !seen[place] {
			seen[place] = true
			go p.follow(ctx, end, place, "", selection, lines)
		}
		return true
	})
}

// ask gets a list.
func (p *proxy) ask(ctx context.Context, path string, query url.Values, kind string) (*list, error) {
	answer, err := p.get(ctx, path, query, kind)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	var found list
	return &found, json.NewDecoder(answer.Body).Decode(&found)
}

// stream hands each event of a watch to tell until either has enough.
func (p *proxy) stream(
	ctx context.Context, path, version string, selection url.Values, kind string, tell func(event) bool,
) {
	query := url.Values{"watch": {"true"}, "resourceVersion": {version}}
	for name, values := range selection {
		query[name] = values
	}
	answer, err := p.get(ctx, path, query, kind)
	if err != nil {
		if ctx.Err() == nil {
			log.Printf("watching %s: %v", path, err)
		}
		return
	}
	defer answer.Body.Close()
	decoder := json.NewDecoder(answer.Body)
	for {
		var got event
		if decoder.Decode(&got) != nil || got.Type == "ERROR" || !tell(got) {
			return
		}
	}
}

func (p *proxy) get(ctx context.Context, path string, query url.Values, kind string) (*http.Response, error) {
	target := *p.api.base
	target.Path += path
	target.RawQuery = query.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", kind)
	request.Header.Set("Authorization", p.api.authorization())
	answer, err := p.api.client.Do(request)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode != http.StatusOK {
		_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, 1<<16))
		answer.Body.Close()
		return nil, refused{answer.StatusCode}
	}
	return answer, nil
}

// closed: a namespace that is not ours yet, or no longer.
func closed(err error) bool {
	var answer refused
	return errors.As(err, &answer) && (answer.status == http.StatusForbidden || answer.status == http.StatusNotFound)
}

func chosen(r *http.Request) url.Values {
	kept := url.Values{}
	for _, name := range []string{"labelSelector", "fieldSelector"} {
		if value := r.URL.Query().Get(name); value != "" {
			kept.Set(name, value)
		}
	}
	return kept
}

func secretsOf(place string) string { return "/api/v1/namespaces/" + place + "/secrets" }

func namespaceOf(item json.RawMessage) string {
	var found named
	_ = json.Unmarshal(item, &found)
	return found.Metadata.Namespace
}

// withKind adds what items of a list leave out and objects of events have.
func withKind(item json.RawMessage) json.RawMessage {
	return append([]byte(`{"kind":"Secret","apiVersion":"v1",`), item[1:]...)
}

func send(ctx context.Context, lines chan<- event, one event) bool {
	select {
	case lines <- one:
		return true
	case <-ctx.Done():
		return false
	}
}

func wait(ctx context.Context, pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// refuse answers as the API server would.
func refuse(w http.ResponseWriter, code int, reason, message string) {
	w.Header().Set("Content-Type", plain)
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(map[string]any{
		"kind": "Status", "apiVersion": "v1", "metadata": map[string]any{}, "status": "Failure",
		"message": message, "reason": reason, "code": code,
	})
}
