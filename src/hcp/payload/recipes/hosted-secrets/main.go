// Command hosted-secrets runs an official manager of Cluster API with rights on Secrets in hosted namespaces only.
//
// Such a manager follows the Secrets of all namespaces, which needs a right on all of them. This stands in its place:
// it starts the official program, which lies beside it as NAME.official, with the same arguments, and is its API server
// at an address of this machine. Everything is handed on as it is, with the pod's own token; only who asks for all
// Secrets gets those of the namespaces that have a Cluster, asked for one namespace after the other.
package main

import (
	"crypto/rand"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"
	"time"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("hosted-secrets: ")
	api, arguments, err := findAPI(os.Args[1:])
	if err != nil {
		log.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	key := make([]byte, 32)
	if _, err := rand.Read(key); err != nil {
		log.Fatal(err)
	}
	word := hex.EncodeToString(key)
	pair, authority, err := certificate()
	if err != nil {
		log.Fatal(err)
	}
	config, err := inMemory("kubeconfig", kubeconfig("https://"+listener.Addr().String(), authority, word))
	if err != nil {
		log.Fatal(err)
	}
	server := &http.Server{
		Handler:           newProxy(api, word),
		ReadHeaderTimeout: 10 * time.Second,
		TLSConfig:         &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13},
	}
	go func() { log.Fatal(server.ServeTLS(listener, "", "")) }()
	os.Exit(run(config, arguments))
}

// run starts the manager, hands signals on and gives its exit code. It ends with us, however we end.
func run(config *os.File, arguments []string) int {
	self, err := os.Executable()
	if err != nil {
		log.Fatal(err)
	}
	runtime.LockOSThread() // the manager is ended with the thread that started it
	manager := exec.Command(self+".official", append(arguments, "--kubeconfig=/proc/self/fd/3")...)
	manager.Stdout, manager.Stderr = os.Stdout, os.Stderr
	manager.ExtraFiles = []*os.File{config}
	manager.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	if err := manager.Start(); err != nil {
		log.Fatal(err)
	}
	go func() {
		for received := range signals {
			_ = manager.Process.Signal(received)
		}
	}()
	err = manager.Wait()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		if code := failed.ExitCode(); code >= 0 {
			return code
		}
		return 1
	}
	if err != nil {
		log.Fatal(err)
	}
	return 0
}

// kubeconfig is how the manager reaches us; the word keeps everybody else on this machine out.
func kubeconfig(server string, authority []byte, word string) []byte {
	cluster := map[string]any{"server": server, "certificate-authority-data": authority}
	text, err := json.Marshal(map[string]any{
		"apiVersion":      "v1",
		"kind":            "Config",
		"current-context": "here",
		"clusters":        []any{map[string]any{"name": "here", "cluster": cluster}},
		"users":           []any{map[string]any{"name": "here", "user": map[string]any{"token": word}}},
		"contexts":        []any{map[string]any{"name": "here", "context": map[string]any{"cluster": "here", "user": "here"}}},
	})
	if err != nil {
		log.Fatal(err)
	}
	return text
}

// inMemory is a file that is on no disk: nothing may be written in the manager's container.
func inMemory(name string, content []byte) (*os.File, error) {
	fd, err := memfd(name)
	if err != nil {
		return nil, fmt.Errorf("a file in memory: %w", err)
	}
	file := os.NewFile(uintptr(fd), name)
	_, err = file.Write(content)
	return file, err
}
