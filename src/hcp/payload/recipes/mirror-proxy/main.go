// Command mirror-proxy stands between a node's containerd and the mirrors of its registries.
//
// containerd asks a mirror for the path that an image has at its source, and with the source's login. This knows the
// cluster's rules: it asks each mirror for the path that the image has there, with the login for that mirror.
//
//	mirror-proxy CONFIG
package main

import (
	"encoding/json"
	"log"
	"net"
	"net/http"
	"os"
	"time"
)

// config is what the operator writes for a node.
type config struct {
	Listen string `json:"listen"`
	Rules  []rule `json:"rules"`
	// Registry → file with certificates to trust there, besides the system's.
	Authorities map[string]string `json:"authorities"`
}

func main() {
	log.SetFlags(0)
	if len(os.Args) != 2 {
		log.Fatal("usage: mirror-proxy CONFIG")
	}
	text, err := os.ReadFile(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	var given config
	if err := json.Unmarshal(text, &given); err != nil {
		log.Fatalf("%s: %v", os.Args[1], err)
	}
	clients, err := newClients(given.Authorities)
	if err != nil {
		log.Fatal(err)
	}
	// The service manager hands the pull secret over; without one every mirror is asked without a login.
	folder := os.Getenv("CREDENTIALS_DIRECTORY")
	logins, err := readLogins(folder + "/pull-secret")
	if err != nil && !os.IsNotExist(err) {
		log.Printf("the pull secret is not used: %v", err)
	}
	listener, err := net.Listen("tcp", given.Listen)
	if err != nil {
		log.Fatal(err)
	}
	log.Printf("%d rules for mirrors, at %s", len(given.Rules), listener.Addr())
	server := &http.Server{
		Handler:           &proxy{given.Rules, &asker{clients: clients, logins: logins}},
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
	}
	log.Fatal(server.Serve(listener))
}
