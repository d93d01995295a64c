package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"time"
)

// login is one account of a pull secret.
type login struct {
	Auth     string `json:"auth"`
	Username string `json:"username"`
	Password string `json:"password"`
	Identity string `json:"identitytoken"`
}

// logins are accounts by registry, or by registry and path.
type logins map[string]login

func readLogins(file string) (logins, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var given struct {
		Auths logins `json:"auths"`
	}
	if err := json.Unmarshal(text, &given); err != nil {
		return nil, errors.New("it is not JSON with logins by registry")
	}
	found := logins{}
	for key, one := range given.Auths {
		if pair, err := base64.StdEncoding.DecodeString(one.Auth); err == nil && len(pair) > 0 {
			one.Username, one.Password, _ = strings.Cut(string(pair), ":")
		}
		found[plain(key)] = one
	}
	return found, nil
}

// plain is a registry as images name it: pull secrets have addresses, too.
func plain(key string) string {
	if _, rest, ok := strings.Cut(key, "://"); ok {
		key = rest
	}
	key = strings.TrimSuffix(strings.TrimSuffix(strings.Trim(key, "/"), "/v1"), "/v2")
	first, rest, _ := strings.Cut(key, "/")
	if first == "index.docker.io" || first == "registry-1.docker.io" {
		first = "docker.io"
	}
	return strings.Trim(first+"/"+rest, "/")
}

// of is the account for a repository: `host/a/b` before `host/a` before `host`.
func (l logins) of(where place) (login, bool) {
	for name := where.registry + "/" + where.repository; name != ""; {
		if found, ok := l[name]; ok {
			return found, true
		}
		at := strings.LastIndex(name, "/")
		name = name[:max(at, 0)]
	}
	return login{}, false
}

var parameter = regexp.MustCompile(`([A-Za-z_]+)\s*=\s*(?:"([^"]*)"|([^\s,]+))`)

// meet answers a registry's challenge.
func (l logins) meet(ctx context.Context, client *http.Client, challenges []string, where place) (grant, error) {
	account, known := l.of(where)
	for _, challenge := range challenges {
		scheme, rest, _ := strings.Cut(strings.TrimSpace(challenge), " ")
		switch strings.ToLower(scheme) {
		case "basic":
			if known && account.Username != "" {
				pair := base64.StdEncoding.EncodeToString([]byte(account.Username + ":" + account.Password))
				return grant{"Basic " + pair, time.Now().Add(time.Hour)}, nil
			}
		case "bearer":
			asked := map[string]string{}
			for _, found := range parameter.FindAllStringSubmatch(rest, -1) {
				asked[strings.ToLower(found[1])] = found[2] + found[3]
			}
			return token(ctx, client, account, asked, where)
		}
	}
	if !known {
		return grant{}, fmt.Errorf("it wants a login, and the pull secret has none for %s", where.registry)
	}
	return grant{}, errors.New("it wants a login in a way that is not known")
}

// token is bought at the service that the registry names.
func token(ctx context.Context, client *http.Client, account login, asked map[string]string, where place) (grant, error) {
	realm, err := url.Parse(asked["realm"])
	if err != nil || realm.Scheme != "https" {
		return grant{}, errors.New("its token service has no address with TLS")
	}
	scope := asked["scope"]
	if scope == "" {
		scope = "repository:" + where.repository + ":pull"
	}
	values := url.Values{"service": {asked["service"]}, "scope": {scope}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, realm.String(), nil)
	if account.Identity != "" {
		values.Set("grant_type", "refresh_token")
		values.Set("refresh_token", account.Identity)
		values.Set("client_id", "mirror-proxy")
		request, err = http.NewRequestWithContext(ctx, http.MethodPost, realm.String(), strings.NewReader(values.Encode()))
	}
	if err != nil {
		return grant{}, err
	}
	if request.Method == http.MethodPost {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	} else {
		query := realm.Query()
		for key := range values {
			query.Set(key, values.Get(key))
		}
		request.URL.RawQuery = query.Encode()
		if account.Username != "" {
			request.SetBasicAuth(account.Username, account.Password)
		}
	}
	answer, err := client.Do(request)
	if err != nil {
		return grant{}, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return grant{}, fmt.Errorf("its token service says %s", answer.Status)
	}
	var sold struct {
		Token   string  `json:"token"`
		Access  string  `json:"access_token"`
		Expires float64 `json:"expires_in"`
	}
	if err := json.NewDecoder(io.LimitReader(answer.Body, 1<<20)).Decode(&sold); err != nil {
		return grant{}, fmt.Errorf("its token service does not answer with a token: %w", err)
	}
	value := sold.Token + sold.Access
	if sold.Token != "" {
		value = sold.Token
	}
	life := 60.0
	if sold.Expires > 0 {
		life = min(sold.Expires, 3600)
	}
	return grant{"Bearer " + value, time.Now().Add(time.Duration(life*0.8) * time.Second)}, nil
}
