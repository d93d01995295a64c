package main

import (
	"crypto/subtle"
	"log"
	"net/http"
	"net/http/httputil"
	"strconv"
	"sync"
	"time"
)

const remembered = 16

// proxy hands everything on, but for the Secrets of all namespaces.
type proxy struct {
	api  *api
	word string
	on   *httputil.ReverseProxy

	lock  sync.Mutex
	last  int64
	lists map[string]state
}

func newProxy(api *api, word string) *proxy {
	made := &proxy{api: api, word: word, last: time.Now().UnixMicro(), lists: map[string]state{}}
	made.on = &httputil.ReverseProxy{
		Rewrite: func(request *httputil.ProxyRequest) {
			request.SetURL(api.base)
			request.Out.Header.Set("Authorization", api.authorization())
		},
		Transport:     api.client.Transport,
		FlushInterval: -1, // a watch says what it has at once
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if r.Context().Err() == nil {
				log.Printf("%s %s: %v", r.Method, r.URL.Path, err)
			}
			refuse(w, http.StatusBadGateway, "ServiceUnavailable", err.Error())
		},
	}
	return made
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	given := []byte(r.Header.Get("Authorization"))
	if subtle.ConstantTimeCompare(given, []byte("Bearer "+p.word)) != 1 {
		refuse(w, http.StatusUnauthorized, "Unauthorized", "this address is the manager's own")
		return
	}
	if r.URL.Path != "/api/v1/secrets" || r.Method != http.MethodGet {
		p.on.ServeHTTP(w, r)
		return
	}
	query := r.URL.Query()
	watch, _ := strconv.ParseBool(query.Get("watch"))
	if !watch {
		p.list(w, r)
		return
	}
	if query.Has("sendInitialEvents") {
		refuse(w, http.StatusUnprocessableEntity, "Invalid", "a watch begins with a list here")
		return
	}
	p.watch(w, r)
}

// remember gives a list a version of its own: a watch goes on from where each namespace was then.
func (p *proxy) remember(found state) string {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.last = max(p.last+1, time.Now().UnixMicro())
	version := strconv.FormatInt(p.last, 10)
	p.lists[version] = found
	for len(p.lists) > remembered {
		oldest := version
		for known := range p.lists {
			if len(known) < len(oldest) || len(known) == len(oldest) && known < oldest {
				oldest = known
			}
		}
		delete(p.lists, oldest)
	}
	return version
}

// recall gives what a list saw. Once only: a watch that was interrupted begins with a list again, because events of
// several namespaces have no order that could be continued.
func (p *proxy) recall(version string) (state, bool) {
	p.lock.Lock()
	defer p.lock.Unlock()
	found, known := p.lists[version]
	delete(p.lists, version)
	return found, known
}
