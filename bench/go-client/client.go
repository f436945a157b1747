package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

const (
	requestTimeout = 5 * time.Minute
	chunkBytes     = 256 << 10
	attemptsMax    = 10
)

// dialer makes clients of one server. Each has a connection of its own, and more if the server
// allows it too few streams.
type dialer struct {
	server string
	token  string
	http1  bool
	gzip   bool
	tls    *tls.Config
	// How many answers asked the client to come back later.
	retried *atomic.Int64
}

func newDialer(asked job) (*dialer, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: asked.Authority == ""}
	if asked.Authority != "" {
		text, err := os.ReadFile(asked.Authority)
		if err != nil {
			return nil, err
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("%s holds no certificate", asked.Authority)
		}
	}
	if asked.Certificate != "" {
		pair, err := tls.LoadX509KeyPair(asked.Certificate, asked.Key)
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return &dialer{server: asked.Server, token: asked.Token, http1: asked.HTTP1, gzip: asked.Gzip, tls: config, retried: &atomic.Int64{}}, nil
}

type client struct {
	*dialer
	http *http.Client
}

func (d *dialer) client() *client {
	transport := &http.Transport{
		TLSClientConfig:     d.tls.Clone(),
		ForceAttemptHTTP2:   !d.http1,
		DisableCompression:  true,
		MaxIdleConnsPerHost: 1 << 16,
	}
	if d.http1 {
		transport.TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{}
	}
	return &client{dialer: d, http: &http.Client{Transport: transport}}
}

func (d *dialer) clients(count int) []*client {
	clients := make([]*client, max(1, count))
	for i := range clients {
		clients[i] = d.client()
	}
	return clients
}

func (c *client) close() { c.http.CloseIdleConnections() }

// open repeats a request while the server asks to come back later, as client-go does, and counts
// how often that was.
func (c *client) open(ctx context.Context, method, path string, body []byte) (*http.Response, error) {
	for attempt := 1; ; attempt++ {
		response, err := c.send(ctx, method, path, body)
		var refused *refusal
		if !errors.As(err, &refused) || refused.retryAfter == 0 || attempt == attemptsMax {
			return response, err
		}
		c.retried.Add(1)
		time.Sleep(refused.retryAfter)
	}
}

// send returns the answer, whose body the caller reads. An error names the request.
func (c *client) send(ctx context.Context, method, path string, body []byte) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, c.server+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/json")
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if c.gzip {
		request.Header.Set("Accept-Encoding", "gzip")
	}
	if c.token != "" {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", method, path, err)
	}
	if response.StatusCode >= 300 {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 300))
		response.Body.Close()
		return nil, &refusal{status: response.StatusCode, retryAfter: retryAfter(response), text: fmt.Sprintf("%s %s: %d %s", method, path, response.StatusCode, text)}
	}
	return response, nil
}

type refusal struct {
	status     int
	text       string
	retryAfter time.Duration
}

func retryAfter(response *http.Response) time.Duration {
	seconds, err := strconv.Atoi(response.Header.Get("Retry-After"))
	if err != nil || (response.StatusCode != http.StatusTooManyRequests && response.StatusCode < http.StatusInternalServerError) {
		return 0
	}
	return time.Duration(seconds) * time.Second
}

func (r *refusal) Error() string { return r.text }

var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// ask reads the whole answer and passes it to `read`, which must not keep it.
func (c *client) ask(method, path string, body []byte, read func(answer []byte) error) (protocol string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
	defer cancel()
	response, err := c.open(ctx, method, path, body)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	buffer := buffers.Get().(*bytes.Buffer)
	defer buffers.Put(buffer)
	buffer.Reset()
	if _, err := buffer.ReadFrom(response.Body); err != nil {
		return response.Proto, fmt.Errorf("%s %s: %w", method, path, err)
	}
	return response.Proto, read(buffer.Bytes())
}

var chunks = sync.Pool{New: func() any { return new([chunkBytes]byte) }}

// count reads an answer piece by piece and returns its size and the number of the bench's names in
// it.
func (c *client) count(path string) (protocol string, size, names int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
	defer cancel()
	response, err := c.open(ctx, http.MethodGet, path, nil)
	if err != nil {
		return "", 0, 0, err
	}
	defer response.Body.Close()
	chunk := chunks.Get().(*[chunkBytes]byte)
	defer chunks.Put(chunk)
	// Keeps the end of a piece, which may be the beginning of a name, in front of the next piece.
	kept := 0
	for {
		read, err := response.Body.Read(chunk[kept:])
		size += read
		end := kept + read
		names += bytes.Count(chunk[:end], nameMark)
		if kept = min(end, len(nameMark)-1); read > 0 {
			copy(chunk[:kept], chunk[end-kept:end])
		}
		if err == io.EOF {
			return response.Proto, size, names, nil
		}
		if err != nil {
			return response.Proto, size, names, fmt.Errorf("GET %s: %w", path, err)
		}
	}
}
