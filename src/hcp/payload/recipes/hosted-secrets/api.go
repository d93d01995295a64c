package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"
)

const (
	account  = "/var/run/secrets/kubernetes.io/serviceaccount/"
	tokenFor = time.Minute // a token is renewed long before it ends
)

// api is the real API server, and how we are known to it.
type api struct {
	base   *url.URL
	client *http.Client

	lock  sync.Mutex
	token string
	file  string
	until time.Time
}

// findAPI takes --kubeconfig out of the arguments, or else uses what every pod has.
func findAPI(arguments []string) (*api, []string, error) {
	var kept []string
	path := ""
	for index := 0; index < len(arguments); index++ {
		name, value, joined := strings.Cut(arguments[index], "=")
		if strings.TrimLeft(name, "-") != "kubeconfig" {
			kept = append(kept, arguments[index])
			continue
		}
		if !joined && index+1 < len(arguments) {
			index++
			value = arguments[index]
		}
		path = value
	}
	if path != "" {
		found, err := fromKubeconfig(path)
		return found, kept, err
	}
	found, err := fromPod()
	return found, kept, err
}

func fromPod() (*api, error) {
	host, port := os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")
	if host == "" || port == "" {
		return nil, errors.New("not in a pod, and no --kubeconfig: where is the API server?")
	}
	authority, err := os.ReadFile(account + "ca.crt")
	if err != nil {
		return nil, err
	}
	return newAPI("https://"+net.JoinHostPort(host, port), authority, "", account+"token")
}

// fromKubeconfig reads one written as JSON, with a token: what a test has.
func fromKubeconfig(path string) (*api, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var config struct {
		Clusters []struct {
			Cluster struct {
				Server    string `json:"server"`
				Authority string `json:"certificate-authority-data"`
			} `json:"cluster"`
		} `json:"clusters"`
		Users []struct {
			User struct {
				Token string `json:"token"`
			} `json:"user"`
		} `json:"users"`
	}
	if err := json.Unmarshal(text, &config); err != nil {
		return nil, fmt.Errorf("%s is no kubeconfig in JSON: %w", path, err)
	}
	if len(config.Clusters) != 1 || len(config.Users) != 1 || config.Users[0].User.Token == "" {
		return nil, fmt.Errorf("%s: one cluster and one user with a token are needed", path)
	}
	authority, err := base64.StdEncoding.DecodeString(config.Clusters[0].Cluster.Authority)
	if err != nil {
		return nil, err
	}
	return newAPI(config.Clusters[0].Cluster.Server, authority, config.Users[0].User.Token, "")
}

func newAPI(server string, authority []byte, token, file string) (*api, error) {
	base, err := url.Parse(server)
	if err != nil {
		return nil, err
	}
	trusted := x509.NewCertPool()
	if !trusted.AppendCertsFromPEM(authority) {
		return nil, errors.New("no certificate of the API server's authority")
	}
	transport := &http.Transport{
		DialContext:         (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
		TLSClientConfig:     &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12},
		ForceAttemptHTTP2:   true,
		HTTP2:               &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second},
		TLSHandshakeTimeout: 10 * time.Second,
		IdleConnTimeout:     90 * time.Second,
		MaxIdleConnsPerHost: 25,
	}
	return &api{base: base, client: &http.Client{Transport: transport}, token: token, file: file}, nil
}

// authorization is the pod's token as it is now.
func (a *api) authorization() string {
	a.lock.Lock()
	defer a.lock.Unlock()
	if a.file != "" && time.Now().After(a.until) {
		if text, err := os.ReadFile(a.file); err == nil {
			a.token, a.until = strings.TrimSpace(string(text)), time.Now().Add(tokenFor)
		}
	}
	return "Bearer " + a.token
}
