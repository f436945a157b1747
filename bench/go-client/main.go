// Command go-client measures a cache server as a controller written in Go uses it: net/http over HTTP/2, one connection,
// many requests at once, a client certificate.
//
// It reads requests from a file and sends each once, in this order, at most `workers` at a time within one phase:
//
//	{"method":"POST","path":"…","body":"…"}            a create
//	{"method":"GET","path":"…","contains":"…"}         a get; the answer must contain that text
//
// A phase is a run of one method. Each prints one line of JSON on standard output:
//
//	{"method":"GET","requests":10000,"elapsedMs":…,"p50Ms":…,"p99Ms":…,"protocol":"HTTP/2.0","wrong":0,"firstWrong":""}
//
// The file is read in full before the first request. A request that takes longer than requestTimeout counts as wrong.
package main

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	requestTimeout = 30 * time.Second
	lineBytesMax   = 16 << 20
)

type request struct {
	Method   string `json:"method"`
	Path     string `json:"path"`
	Body     string `json:"body"`
	Contains string `json:"contains"`
}

type result struct {
	Method     string  `json:"method"`
	Requests   int     `json:"requests"`
	ElapsedMs  float64 `json:"elapsedMs"`
	P50Ms      float64 `json:"p50Ms"`
	P99Ms      float64 `json:"p99Ms"`
	Protocol   string  `json:"protocol"`
	Wrong      int     `json:"wrong"`
	FirstWrong string  `json:"firstWrong"`
}

func main() {
	server := flag.String("server", "", "URL of the cache server, without a path")
	authority := flag.String("ca", "", "file of the CA certificate for the server")
	certificate := flag.String("cert", "", "file of the client certificate")
	key := flag.String("key", "", "file of its key")
	file := flag.String("requests", "", "file of requests, one of JSON a line")
	workers := flag.Int("workers", 16, "requests under way at once")
	flag.Parse()

	if err := run(*server, *authority, *certificate, *key, *file, *workers); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(server, authority, certificate, key, file string, workers int) error {
	client, err := newClient(authority, certificate, key)
	if err != nil {
		return err
	}
	requests, err := readRequests(file)
	if err != nil {
		return err
	}
	for len(requests) > 0 {
		method := requests[0].Method
		end := slices.IndexFunc(requests, func(each request) bool { return each.Method != method })
		if end < 0 {
			end = len(requests)
		}
		line, err := json.Marshal(measure(client, server, requests[:end], workers))
		if err != nil {
			return err
		}
		fmt.Println(string(line))
		requests = requests[end:]
	}
	return nil
}

func newClient(authority, certificate, key string) (*http.Client, error) {
	pair, err := tls.LoadX509KeyPair(certificate, key)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(authority)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s holds no certificate", authority)
	}
	return &http.Client{
		Timeout: requestTimeout,
		Transport: &http.Transport{
			TLSClientConfig:    &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: roots, MinVersion: tls.VersionTLS12},
			ForceAttemptHTTP2:  true,
			DisableCompression: true,
		},
	}, nil
}

func readRequests(file string) ([]request, error) {
	opened, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer opened.Close()
	var requests []request
	lines := bufio.NewScanner(opened)
	lines.Buffer(nil, lineBytesMax)
	for lines.Scan() {
		var each request
		if err := json.Unmarshal(lines.Bytes(), &each); err != nil {
			return nil, err
		}
		requests = append(requests, each)
	}
	return requests, lines.Err()
}

// measure sends every request once. It reports how many failed, and the reason of the first failure.
func measure(client *http.Client, server string, requests []request, workers int) result {
	measured := result{Method: requests[0].Method, Requests: len(requests)}
	delays := make([]time.Duration, len(requests))
	var next atomic.Int64
	var mutex sync.Mutex
	var running sync.WaitGroup

	began := time.Now()
	for range workers {
		running.Go(func() {
			for {
				index := int(next.Add(1)) - 1
				if index >= len(requests) {
					return
				}
				sent := time.Now()
				protocol, wrong := send(client, server, requests[index])
				delays[index] = time.Since(sent)
				if index != 0 && wrong == "" {
					continue
				}
				mutex.Lock()
				if index == 0 {
					measured.Protocol = protocol
				}
				if wrong != "" {
					measured.Wrong++
					if measured.FirstWrong == "" {
						measured.FirstWrong = wrong
					}
				}
				mutex.Unlock()
			}
		})
	}
	running.Wait()

	measured.ElapsedMs = milliseconds(time.Since(began))
	slices.Sort(delays)
	measured.P50Ms = milliseconds(delays[len(delays)/2])
	measured.P99Ms = milliseconds(delays[len(delays)*99/100])
	return measured
}

// send returns the protocol, and the fault or "".
func send(client *http.Client, server string, each request) (protocol, wrong string) {
	name := each.Method + " " + each.Path
	sent, err := http.NewRequest(each.Method, server+each.Path, strings.NewReader(each.Body))
	if err != nil {
		return "", fmt.Sprintf("%s: %v", name, err)
	}
	if each.Body != "" {
		sent.Header.Set("Content-Type", "application/json")
	}
	response, err := client.Do(sent)
	if err != nil {
		return "", fmt.Sprintf("%s: %v", name, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	switch {
	case err != nil:
		return response.Proto, fmt.Sprintf("%s: %v", name, err)
	case response.StatusCode >= 300:
		return response.Proto, fmt.Sprintf("%s: %d %.200s", name, response.StatusCode, body)
	case !bytes.Contains(body, []byte(each.Contains)):
		return response.Proto, fmt.Sprintf("%s: the answer lacks %s", name, each.Contains)
	default:
		return response.Proto, ""
	}
}

func milliseconds(elapsed time.Duration) float64 { return float64(elapsed.Microseconds()) / 1_000 }
