package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"time"
)

const kept = 1000

// asker asks registries, with the login for each.
type asker struct {
	clients *clients
	logins  logins
	mutex   sync.Mutex
	// What worked last time, by registry and repository.
	known map[place]grant
}

type grant struct {
	header string
	until  time.Time
}

// ask sends one request; it buys a token or shows the login where the registry wants that.
func (a *asker) ask(ctx context.Context, method string, where place, what string, header http.Header) (*http.Response, error) {
	client := a.clients.of(where.registry)
	send := func(authorization string) (*http.Response, error) {
		address := "https://" + host(where.registry) + "/v2/" + where.repository + what
		request, err := http.NewRequestWithContext(ctx, method, address, nil)
		if err != nil {
			return nil, err
		}
		request.Header = header.Clone()
		// The body is passed on as it is.
		request.Header.Set("Accept-Encoding", "identity")
		if authorization != "" {
			request.Header.Set("Authorization", authorization)
		}
		return client.Do(request)
	}
	answer, err := send(a.recall(where))
	if err != nil || answer.StatusCode != http.StatusUnauthorized {
		return answer, err
	}
	challenges := answer.Header.Values("WWW-Authenticate")
	_, _ = io.CopyN(io.Discard, answer.Body, 64<<10)
	answer.Body.Close()
	found, err := a.logins.meet(ctx, client, challenges, where)
	if err != nil {
		return nil, err
	}
	a.remember(where, found)
	return send(found.header)
}

func (a *asker) recall(where place) string {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if known, ok := a.known[where]; ok && time.Now().Before(known.until) {
		return known.header
	}
	return ""
}

func (a *asker) remember(where place, found grant) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if a.known == nil || len(a.known) >= kept {
		a.known = map[place]grant{}
	}
	a.known[where] = found
}

// clients are HTTP clients by what they trust.
type clients struct {
	usual *http.Client
	own   map[string]*http.Client
}

func newClients(authorities map[string]string) (*clients, error) {
	made := &clients{newClient(nil), map[string]*http.Client{}}
	for registry, file := range authorities {
		pem, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		pool, err := x509.SystemCertPool()
		if err != nil {
			return nil, err
		}
		if !pool.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s has no certificate", file)
		}
		made.own[registry] = newClient(pool)
	}
	return made, nil
}

func (c *clients) of(registry string) *http.Client {
	if own, ok := c.own[registry]; ok {
		return own
	}
	return c.usual
}

func newClient(trusted *x509.CertPool) *http.Client {
	transport := &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSClientConfig:       &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:   10 * time.Second,
		ResponseHeaderTimeout: time.Minute,
		IdleConnTimeout:       time.Minute,
		MaxIdleConnsPerHost:   8,
		DisableCompression:    true,
		ForceAttemptHTTP2:     true,
	}
	return &http.Client{Transport: transport, CheckRedirect: follow}
}

// follow goes where a registry keeps its blobs, with TLS only; Go takes the login away when the host is another one.
func follow(next *http.Request, before []*http.Request) error {
	if next.URL.Scheme != "https" {
		return errors.New("the mirror leads to an address without TLS")
	}
	if len(before) >= 5 {
		return errors.New("the mirror leads in circles")
	}
	return nil
}

// host is where a registry is reached: one is known by another name.
func host(registry string) string {
	if registry == "docker.io" {
		return "registry-1.docker.io"
	}
	return registry
}
