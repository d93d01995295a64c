// Package htpasswd lets people in by files of names and hashes of passwords, as Apache's htpasswd writes them.
//
// Files are read at every attempt: whoever changes one need not restart anything. Nothing about a password, right or
// wrong, is logged.
package htpasswd

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"

	"github.com/dexidp/dex/connector"
	"github.com/prometheus/client_golang/prometheus"
)

// Attempts counts logins by a password.
var Attempts = prometheus.NewCounterVec(
	prometheus.CounterOpts{
		Name: "hcp_login_attempts_total",
		Help: "Logins by a password that a file of names and hashes knows, or does not know.",
	},
	[]string{"result"},
)

// Compared with where a name is unknown, so that the time of an answer does not tell whether there is one.
const nobody = "$2a$10$7EqJtq98hPqEX7fNZaFWoOhi5B0nPsTZpQz2ne0O1oUXj0eVYmj0G"

// File is where the users of one identity provider are.
type File struct {
	// Empty for users that belong to the cluster itself.
	Provider string `json:"provider"`
	Path     string `json:"path"`
}

// Config is what dex is configured with.
type Config struct {
	// Asked in this order; the first that knows name and password decides who it is.
	Files []File `json:"files"`
}

// Open is called by dex.
func (c *Config) Open(id string, logger *slog.Logger) (connector.Connector, error) {
	if len(c.Files) == 0 {
		return nil, errors.New("no files are given")
	}
	return &passwords{files: c.Files, logger: logger.With("connector", id), pace: newPace()}, nil
}

type passwords struct {
	files  []File
	logger *slog.Logger
	pace   *pace
}

var (
	_ connector.PasswordConnector = (*passwords)(nil)
	_ connector.RefreshConnector  = (*passwords)(nil)
)

// Prompt is what the login page asks for.
func (p *passwords) Prompt() string {
	return "Username"
}

// Login waits for its turn first: after wrong passwords the next one is looked at later and later.
func (p *passwords) Login(ctx context.Context, _ connector.Scopes, name, password string) (connector.Identity, bool, error) {
	done, err := p.pace.begin(ctx, name)
	if err != nil {
		Attempts.WithLabelValues("refused").Inc()
		return connector.Identity{}, false, nil
	}
	found, identity := p.find(name, password)
	done(found)
	if !found {
		Attempts.WithLabelValues("refused").Inc()
		return connector.Identity{}, false, nil
	}
	Attempts.WithLabelValues("accepted").Inc()
	return identity, true, nil
}

// Refresh refuses who is in no file any more.
func (p *passwords) Refresh(_ context.Context, _ connector.Scopes, identity connector.Identity) (connector.Identity, error) {
	for _, file := range p.files {
		if identity.UserID == userID(file.Provider, identity.PreferredUsername) && p.hash(file, identity.PreferredUsername) != "" {
			return identity, nil
		}
	}
	return connector.Identity{}, errors.New("the user does not exist any more")
}

func (p *passwords) find(name, password string) (bool, connector.Identity) {
	known := false
	for _, file := range p.files {
		hash := p.hash(file, name)
		if hash == "" {
			continue
		}
		known = true
		if matches(hash, password) {
			return true, connector.Identity{
				UserID:            userID(file.Provider, name),
				Username:          name,
				PreferredUsername: name,
			}
		}
	}
	if !known {
		matches(nobody, password)
	}
	return false, connector.Identity{}
}

// userID is unique among all files: names of providers have no slash in them.
func userID(provider, name string) string {
	if provider == "" {
		return name
	}
	return provider + "/" + name
}

func (p *passwords) hash(file File, name string) string {
	if name == "" || strings.ContainsAny(name, ":\n\r") {
		return ""
	}
	content, err := os.ReadFile(file.Path)
	if err != nil {
		if !errors.Is(err, os.ErrNotExist) {
			p.logger.Error("a file of users cannot be read", "path", file.Path, "err", err)
		}
		return ""
	}
	lines := bufio.NewScanner(bytes.NewReader(content))
	for lines.Scan() {
		user, hash, divided := strings.Cut(strings.TrimSpace(lines.Text()), ":")
		if divided && user == name {
			return hash
		}
	}
	return ""
}
