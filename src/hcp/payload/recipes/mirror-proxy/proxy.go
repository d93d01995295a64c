package main

import (
	"context"
	"encoding/json"
	"io"
	"log"
	"net/http"
	"strings"
)

// What a registry's answer says about its body, and what a client may ask of it.
var (
	told  = []string{"Accept", "Range", "If-None-Match"}
	heard = []string{
		"Accept-Ranges", "Content-Encoding", "Content-Length", "Content-Range", "Content-Type", "Docker-Content-Digest", "Etag",
	}
)

type proxy struct {
	rules []rule
	asker *asker
}

// ServeHTTP answers what is asked of a registry when something is pulled; the registry that is meant is in the query.
func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		refuse(w, http.StatusMethodNotAllowed, "UNSUPPORTED", "mirrors are only read")
		return
	}
	repository, what, ok := parts(r.URL.Path)
	registry := r.URL.Query().Get("ns")
	if !ok || registry == "" || strings.Contains(registry, "/") {
		refuse(w, http.StatusNotFound, "NAME_UNKNOWN", "this is not a path of an image")
		return
	}
	name := registry + "/" + repository
	asked := places(p.rules, name)
	status, said := http.StatusNotFound, []string{"no mirror has " + name}
	for _, mirror := range asked {
		answer, err := p.asker.ask(r.Context(), r.Method, mirror, what, pick(r.Header, told))
		if err == nil && answer.StatusCode < 300 {
			pass(r.Context(), w, answer)
			return
		}
		reason := ""
		if err != nil {
			reason = err.Error()
		} else {
			answer.Body.Close()
			reason = answer.Status
		}
		if err != nil || answer.StatusCode != http.StatusNotFound {
			// Something is wrong with it, which the person who waits for the image should read.
			status = http.StatusBadGateway
			log.Printf("%s of %s: %s", what, name, mirror.registry+"/"+mirror.repository+": "+reason)
		}
		said = append(said, mirror.registry+"/"+mirror.repository+": "+reason)
	}
	refuse(w, status, "MANIFEST_UNKNOWN", strings.Join(said, "; "))
}

// parts takes a path of the registry protocol apart: repository, and the manifest or blob in it.
func parts(path string) (string, string, bool) {
	path, ok := strings.CutPrefix(path, "/v2/")
	if !ok || strings.Contains(path, "..") {
		return "", "", false
	}
	for _, kind := range []string{"/manifests/", "/blobs/"} {
		if at := strings.LastIndex(path, kind); at > 0 && !strings.Contains(path[at+len(kind):], "/") {
			return path[:at], path[at:], true
		}
	}
	return "", "", false
}

func pass(ctx context.Context, w http.ResponseWriter, answer *http.Response) {
	defer answer.Body.Close()
	for key, values := range pick(answer.Header, heard) {
		w.Header()[key] = values
	}
	w.WriteHeader(answer.StatusCode)
	if _, err := io.Copy(w, answer.Body); err != nil && ctx.Err() == nil {
		log.Printf("%s ended early: %v", answer.Request.URL.Redacted(), err)
		// The client must not take what it has for the whole.
		panic(http.ErrAbortHandler)
	}
}

func pick(from http.Header, names []string) http.Header {
	found := http.Header{}
	for _, name := range names {
		if values := from.Values(name); len(values) > 0 {
			found[http.CanonicalHeaderKey(name)] = values
		}
	}
	return found
}

func refuse(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	problem := map[string]string{"code": code, "message": message}
	_ = json.NewEncoder(w).Encode(map[string]any{"errors": []any{problem}})
}
